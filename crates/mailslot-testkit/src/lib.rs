//! mailslot-testkit
