//! Sessions: one at a time, in acceptance order.

use super::Fixture;
use super::verbs::{claim, done, ids, order, owner, settlement};
use crate::message::message;
use mailslot_core::store::{Appended, Change, SessionRecord};
use mailslot_core::{Disposition, MessageId, Status};

cases![
    messages_of_a_session_run_one_at_a_time_in_order,
    only_the_head_of_a_session_is_leased,
    no_other_worker_gets_the_next_one,
    the_end_of_the_head_lets_the_next_one_go,
    a_new_message_waits_behind_those_that_wait,
    a_session_of_a_group_keeps_the_groups_order,
    a_session_is_its_own_at_each_endpoint_and_tenant,
    a_session_spans_contracts,
    messages_without_a_session_never_wait,
    a_forgotten_session_starts_afresh,
    many_heads_settled_at_once_let_their_next_ones_go,
    a_parked_message_keeps_its_due_time,
    a_duplicate_joins_no_session,
    a_refused_group_joins_no_session,
    sessions_are_listed_by_their_key,
    a_session_without_messages_is_not_listed,
    concurrent_accepts_of_one_session_have_one_head,
];

fn in_session() -> crate::message::MessageBuilder {
    order().session("s")
}

async fn messages_of_a_session_run_one_at_a_time_in_order(fx: &Fixture) {
    let accepted = fx.accept_all((0..5).map(|_| in_session())).await;
    for id in accepted {
        let leased = fx.lease(10).await;
        assert_eq!(ids(&leased), [id]);
        fx.complete(&leased[0]).await;
    }
    assert_eq!(fx.lease(10).await, []);
}

async fn only_the_head_of_a_session_is_leased(fx: &Fixture) {
    let accepted = fx.accept_all((0..3).map(|_| in_session())).await;
    let statuses = fx.statuses([accepted[0], accepted[1], accepted[2]]).await;
    assert_eq!(statuses, [Status::Pending, Status::Parked, Status::Parked]);
    assert_eq!(ids(&fx.lease(10).await), accepted[..1]);
}

async fn no_other_worker_gets_the_next_one(fx: &Fixture) {
    fx.accept_all((0..2).map(|_| in_session())).await;
    fx.lease_one().await;
    assert_eq!(fx.claim(claim("order").by(&owner("other"))).await.leased, []);
    fx.accept(in_session()).await;
    assert_eq!(fx.claim(claim("order").by(&owner("other"))).await.leased, []);
}

async fn the_end_of_the_head_lets_the_next_one_go(fx: &Fixture) {
    let ends = [Disposition::Complete, Disposition::Skip { reason: mailslot_core::Reason::Vetoed }];
    let accepted = fx.accept_all((0..=ends.len()).map(|_| in_session())).await;
    for (n, end) in ends.into_iter().enumerate() {
        fx.settle(&fx.lease_one().await, end).await;
        assert_eq!(fx.status(accepted[n + 1]).await, Status::Pending);
    }
}

async fn a_new_message_waits_behind_those_that_wait(fx: &Fixture) {
    let accepted = fx.accept_all((0..2).map(|_| in_session())).await;
    fx.complete(&fx.lease_one().await).await;
    let third = fx.accept(in_session()).await.id;
    assert_eq!(fx.statuses([accepted[1], third]).await, [Status::Pending, Status::Parked]);
}

async fn a_session_of_a_group_keeps_the_groups_order(fx: &Fixture) {
    let accepted =
        fx.accept_all([in_session(), order(), in_session(), order().session("t"), in_session()]).await;
    assert_eq!(ids(&fx.lease(10).await), [accepted[0], accepted[1], accepted[3]]);
    let listed = done(fx.store.sessions(false, 10).await);
    assert_eq!(
        listed.iter().map(|s| (s.head, s.parked)).collect::<Vec<_>>(),
        [(accepted[0], 2), (accepted[3], 0)]
    );
}

async fn a_session_is_its_own_at_each_endpoint_and_tenant(fx: &Fixture) {
    let accepted = fx
        .accept_all([
            in_session(),
            in_session().tenant("acme"),
            in_session().tenant("umbrella"),
            in_session().endpoint("billing"),
            in_session().tenant("acme").endpoint("billing"),
        ])
        .await;
    let leased = fx.claim(claim("order").lane("billing", "order")).await.leased;
    assert_eq!(ids(&leased), accepted);
    assert_eq!(done(fx.store.sessions(false, 10).await).len(), 5);
}

async fn a_session_spans_contracts(fx: &Fixture) {
    let first = fx.accept(message("invoice").session("s")).await.id;
    let second = fx.accept(in_session()).await.id;
    assert_eq!(fx.lease(10).await, []);
    fx.complete(&fx.claim(claim("invoice")).await.leased[0]).await;
    assert_eq!(fx.statuses([first, second]).await, [Status::Completed, Status::Pending]);
}

async fn messages_without_a_session_never_wait(fx: &Fixture) {
    let accepted = fx.accept_all([in_session(), order(), order()]).await;
    assert_eq!(ids(&fx.lease(10).await), accepted);
}

async fn a_forgotten_session_starts_afresh(fx: &Fixture) {
    for _ in 0..3 {
        fx.accept(in_session()).await;
        fx.complete(&fx.lease_one().await).await;
        assert_eq!(done(fx.store.sessions(false, 10).await), []);
    }
}

async fn many_heads_settled_at_once_let_their_next_ones_go(fx: &Fixture) {
    let sessions: Vec<_> = (0..50).map(|n| format!("s{n}")).collect();
    fx.accept_all(sessions.iter().map(|s| order().session(s))).await;
    let second = fx.accept_all(sessions.iter().map(|s| order().session(s))).await;
    let third = fx.accept_all(sessions.iter().map(|s| order().session(s))).await;
    for expected in [second, third] {
        let heads = fx.lease(100).await;
        assert_eq!(heads.len(), 50);
        let settlements = heads.iter().map(|head| settlement(head, Disposition::Complete)).collect();
        fx.exchange(settlements, None).await;
        let pending =
            mailslot_core::store::Filter { statuses: Some(vec![Status::Pending]), ..Default::default() };
        assert_eq!(fx.find(pending).await, expected);
    }
}

async fn a_parked_message_keeps_its_due_time(fx: &Fixture) {
    fx.accept(in_session()).await;
    let parked = fx.accept(in_session().due_in(100)).await.id;
    let due = fx.after(100);
    assert_eq!(fx.record(parked).await.due_at, Some(due));
    fx.advance(50);
    fx.complete(&fx.lease_one().await).await;
    let record = fx.record(parked).await;
    assert_eq!((record.status, record.due_at), (Status::Pending, Some(due)));
    assert_eq!(fx.lease(10).await, []);
    fx.advance(50);
    assert_eq!(ids(&fx.lease(10).await), [parked]);
}

async fn a_duplicate_joins_no_session(fx: &Fixture) {
    fx.accept(in_session().key("k")).await;
    fx.accept(in_session().key("k")).await;
    fx.accept(order().session("other").key("k")).await;
    let listed = done(fx.store.sessions(false, 10).await);
    assert_eq!((listed.len(), listed[0].parked), (1, 0));
}

async fn a_refused_group_joins_no_session(fx: &Fixture) {
    fx.accept(order().key("k")).await;
    let answers = fx.append_group([in_session(), in_session(), order().key("k").payload("other")]).await;
    assert_eq!(answers[0], Appended::NotStored);
    assert_eq!(done(fx.store.sessions(false, 10).await), []);
}

async fn sessions_are_listed_by_their_key(fx: &Fixture) {
    let mut accepted = Vec::new();
    for session in ["b", "a", "b", "c", "b"] {
        accepted.push(fx.accept(order().session(session)).await.id);
    }
    let listed = done(fx.store.sessions(false, 10).await);
    let told = |s: &SessionRecord| (s.key.to_string(), s.head, s.head_status, s.parked);
    let expected = |key: &str, head: MessageId, parked| (key.to_owned(), head, Status::Pending, parked);
    assert_eq!(
        listed.iter().map(told).collect::<Vec<_>>(),
        [expected("a", accepted[1], 0), expected("b", accepted[0], 2), expected("c", accepted[3], 0),]
    );
    assert_eq!(done(fx.store.sessions(false, 2).await), listed[..2]);
    assert_eq!(done(fx.store.sessions(true, 10).await), []);
}

async fn a_session_without_messages_is_not_listed(fx: &Fixture) {
    let accepted = fx.accept_all((0..3).map(|_| in_session())).await;
    assert_eq!(fx.change(Change::Cancel, accepted).await, 3);
    assert_eq!(done(fx.store.sessions(false, 10).await), []);
}

async fn concurrent_accepts_of_one_session_have_one_head(fx: &Fixture) {
    let accepting: Vec<_> = (0..32)
        .map(|_| {
            let store = std::sync::Arc::clone(&fx.store);
            let group = in_session().build().into();
            tokio::spawn(async move { store.append(vec![group]).await })
        })
        .collect();
    for accepted in accepting {
        done(accepted.await.expect("an accept does not panic"));
    }
    let accepted = fx.find(mailslot_core::store::Filter::default()).await;
    for id in accepted {
        let leased = fx.lease(10).await;
        assert_eq!(ids(&leased), [id]);
        fx.complete(&leased[0]).await;
    }
}
