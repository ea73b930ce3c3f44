//! mailslot-engine
