//! Values as the protocol carries them.

use crate::link::Cell;
use crate::link_sqlx::i64_of;

/// Numbers of built-in types, from `pg_type.dat` of PostgreSQL: they never change.
mod oid {
    pub(super) const BOOL: u32 = 16;
    pub(super) const BYTEA: u32 = 17;
    pub(super) const NAME: u32 = 19;
    pub(super) const INT8: u32 = 20;
    pub(super) const INT2: u32 = 21;
    pub(super) const INT4: u32 = 23;
    pub(super) const TEXT: u32 = 25;
    pub(super) const VARCHAR: u32 = 1043;
    pub(super) const UUID: u32 = 2950;
}

/// A value that is not NULL, in the binary form of the protocol. `None`: no statement of ours gives that type.
pub(super) fn cell(type_oid: u32, bytes: &[u8]) -> Option<Cell> {
    match type_oid {
        oid::BOOL | oid::INT2 | oid::INT4 | oid::INT8 => i64_of(bytes).map(Cell::Int),
        oid::BYTEA | oid::NAME | oid::TEXT | oid::VARCHAR | oid::UUID => Some(Cell::Bytes(bytes.to_vec())),
        _ => None,
    }
}
