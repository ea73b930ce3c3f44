//! A type without the derive, where a message is wanted: the note of the core's trait says what to add.

struct Order;

fn accept<M: mailslot_core::Message>(_: M) {}

fn main() {
    accept(Order);
}
