//! mailslot-store-sqlite
