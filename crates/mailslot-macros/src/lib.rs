//! mailslot-macros
