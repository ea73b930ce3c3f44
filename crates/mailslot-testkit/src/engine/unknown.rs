//! Contracts that a worker does not know.

use super::bench::{Bench, builder_on, fine, start, succeed};
use super::script::Refund;
use mailslot_core::Status;

cases![
    an_unknown_contract_waits_and_is_counted_until_a_worker_knows_it,
    another_endpoints_messages_are_left_alone
];

async fn an_unknown_contract_waits_and_is_counted_until_a_worker_knows_it(b: &Bench) {
    let worker = start(b.builder().handler(succeed).contract::<Refund>());
    let refund = fine(worker.accept(&Refund { number: 1 }).await).id;
    worker.order(1).await;
    worker.drain().await;
    assert_eq!((b.status(refund).await, b.attempt(refund).await), (Status::Pending, 0));
    let unknown = fine(worker.operator().unknown_contracts().await);
    let [count] = &unknown[..] else { panic!("expected one contract: {unknown:?}") };
    assert_eq!((count.contract.to_string().as_str(), count.messages), ("refund@1", 1));
    let other = start(builder_on(b.other_process()).handler(async |_: Refund| ()));
    other.until(|stats| stats.completed == 1).await;
    assert_eq!(fine(worker.operator().unknown_contracts().await), []);
    other.stop().await;
    worker.stop().await;
}

async fn another_endpoints_messages_are_left_alone(b: &Bench) {
    let billing = start(b.builder().handler(succeed).endpoint("billing"));
    let here = billing.order(1).await;
    let there = fine(billing.accept(&super::script::order(2)).endpoint("shipping").await).id;
    billing.drain().await;
    assert_eq!(b.statuses([here, there]).await, [Status::Completed, Status::Pending]);
    let shipping = start(builder_on(b.other_process()).handler(succeed).endpoint("shipping"));
    shipping.until(|stats| stats.completed == 1).await;
    shipping.stop().await;
    billing.stop().await;
}
