//! Input that breaks stores: it is refused at the edge, or it comes back byte for byte.

use super::Fixture;
use super::round_trip::check_round_trip;
use super::verbs::{done, ids, order, settlement_with};
use crate::message::{message, valid};
use mailslot_core::limits::{ENDPOINT_UNITS_MAX, HEADERS_MAX, NAME_UNITS_MAX, PAYLOAD_BYTES_MAX};
use mailslot_core::store::{Cursor, Filter, PageOrder, PageRequest, Settled};
use mailslot_core::{
    Disposition, ErrorText, Handoff, IdempotencyKey, MessageId, Reason, Seq, Status, TenantName,
};

cases![
    names_that_look_alike_are_different_keys,
    names_that_look_alike_are_different_tenants,
    names_that_look_alike_are_different_sessions,
    names_that_look_alike_are_different_lanes,
    names_full_of_syntax_are_only_names,
    the_longest_names_fit,
    a_payload_of_every_byte_comes_back,
    the_largest_payload_comes_back,
    json_with_a_lone_surrogate_comes_back,
    the_most_headers_come_back,
    error_texts_of_any_bytes_are_stored,
    the_longest_error_text_is_stored,
    a_handoff_with_odd_texts_comes_back,
    a_message_that_was_never_there_is_found_nowhere,
    a_cursor_from_nowhere_is_only_a_place,
    what_would_hide_is_refused_before_it_gets_here,
    an_enormous_delay_is_only_late,
];

/// Texts that some collation, some trimming or some normalisation takes for the same.
const ALIKE: [&str; 12] = [
    "stra\u{df}e",
    "strasse",
    "STRASSE",
    "strasse ",
    " strasse",
    "e\u{301}",
    "\u{e9}",
    "\u{fb01}",
    "fi",
    "a\u{200b}b",
    "ab",
    "\u{430}b",
];

async fn names_that_look_alike_are_different_keys(fx: &Fixture) {
    for (n, key) in ALIKE.iter().enumerate() {
        assert!(fx.accept(order().key(key).payload(format!("{n}"))).await.is_new(), "{key:?}");
    }
    for key in ALIKE {
        let filter = Filter { idempotency_key: Some(valid(IdempotencyKey::new(key))), ..Filter::default() };
        assert_eq!(fx.find(filter).await.len(), 1, "{key:?}");
    }
}

async fn names_that_look_alike_are_different_tenants(fx: &Fixture) {
    for tenant in ALIKE {
        assert!(fx.accept(order().key("k").tenant(tenant).payload(tenant)).await.is_new(), "{tenant:?}");
    }
    for name in ALIKE {
        let filter = Filter { tenant: Some(valid(TenantName::new(name))), ..Filter::default() };
        assert_eq!(fx.find(filter).await.len(), 1, "{name:?}");
    }
}

async fn names_that_look_alike_are_different_sessions(fx: &Fixture) {
    let accepted = fx.accept_all(ALIKE.map(|session| order().session(session))).await;
    assert_eq!(ids(&fx.lease(100).await), accepted);
}

async fn names_that_look_alike_are_different_lanes(fx: &Fixture) {
    let accepted = fx.accept_all(ALIKE.map(|name| message(name).endpoint(name))).await;
    for (name, id) in ALIKE.into_iter().zip(accepted) {
        assert_eq!(ids(&fx.claim(super::claim(name).at(name)).await.leased), [id], "{name:?}");
    }
}

async fn names_full_of_syntax_are_only_names(fx: &Fixture) {
    let names =
        ["'; DROP TABLE message; --", "%", "_", "\\", "\"", "$1", "?", "{}", "a'b''c", "\u{feff}x", "NULL"];
    for name in names {
        let odd = message(name).key(name).tenant(name).session(name).endpoint(name);
        check_round_trip(fx, odd.workflow(name, name).header(name, name)).await;
        let filter = Filter { tenant: Some(valid(TenantName::new(name))), ..Filter::default() };
        assert_eq!(fx.find(filter).await.len(), 1, "{name}");
    }
}

async fn the_longest_names_fit(fx: &Fixture) {
    // An emoji is one character, two UTF-16 units, four bytes of UTF-8.
    for (unit, width) in [("\u{1f600}", 2), ("x", 1), ("\u{4e2d}", 1)] {
        let name = unit.repeat(NAME_UNITS_MAX / width);
        let place = unit.repeat(ENDPOINT_UNITS_MAX / width);
        let long = message(&place).endpoint(&place).key(&name).tenant(&name).session(&name);
        check_round_trip(fx, long.clone().workflow(&name, &name)).await;
        assert!(!fx.accept(long).await.is_new());
    }
}

async fn a_payload_of_every_byte_comes_back(fx: &Fixture) {
    let every: Vec<u8> = (0..=255).cycle().take(1_024).collect();
    check_round_trip(fx, order().payload(every).content_type("application/octet-stream")).await;
    check_round_trip(fx, order().payload("")).await;
    check_round_trip(fx, order().payload(vec![0])).await;
}

async fn the_largest_payload_comes_back(fx: &Fixture) {
    // No byte pattern that a page or a compressor would flatter.
    let large: Vec<u8> =
        (0..PAYLOAD_BYTES_MAX as u64).map(|n| (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect();
    check_round_trip(fx, order().payload(large)).await;
}

async fn json_with_a_lone_surrogate_comes_back(fx: &Fixture) {
    check_round_trip(fx, order().payload(r#"{"name":"\ud800","zero":"\u0000"}"#)).await;
    check_round_trip(fx, order().payload(r#"{"a":1,"a":2,  "n":1.0000000000000000001}"#)).await;
}

async fn the_most_headers_come_back(fx: &Fixture) {
    let many =
        (0..HEADERS_MAX).fold(order(), |message, n| message.header(&format!("h{n}"), &"\u{e9}".repeat(100)));
    check_round_trip(fx, many).await;
    check_round_trip(fx, order().header("A", "1").header("a", "2").header("a ", "3")).await;
}

async fn check_error(fx: &Fixture, error: ErrorText) {
    fx.accept(order()).await;
    let leased = fx.lease_one().await;
    let dead = Disposition::DeadLetter { reason: Reason::Failed };
    let settlement = settlement_with(&leased, dead, error.as_str());
    assert_eq!(fx.exchange(vec![settlement], None).await.settled, [Settled::Applied(Status::DeadLettered)]);
    let detail = fx.detail(leased.envelope.id).await;
    assert_eq!(detail.record.error.as_ref(), Some(&error));
    assert_eq!(detail.history[0].error.as_ref(), Some(&error));
}

async fn error_texts_of_any_bytes_are_stored(fx: &Fixture) {
    check_error(fx, ErrorText::from_bytes(b"broken \xff\xfe\x00 pipe \xc3\x28")).await;
    check_error(fx, ErrorText::new("line one\nline two\t\u{1f4a5}")).await;
    check_error(fx, ErrorText::new("")).await;
    check_error(fx, ErrorText::new(" ")).await;
}

async fn the_longest_error_text_is_stored(fx: &Fixture) {
    check_error(fx, ErrorText::new("\u{1f600}".repeat(100_000))).await;
    check_error(fx, ErrorText::new("x".repeat(100_000))).await;
}

async fn a_handoff_with_odd_texts_comes_back(fx: &Fixture) {
    let handoff = valid(Handoff::new("\u{1f600}".repeat(256))).external_job_id("'; --\u{2028}");
    fx.accept(order()).await;
    let leased = fx.lease_one().await;
    fx.settle(&leased, Disposition::Suspend(handoff.clone())).await;
    assert_eq!(fx.record(leased.envelope.id).await.handoff, Some(handoff));
}

async fn a_message_that_was_never_there_is_found_nowhere(fx: &Fixture) {
    fx.accept(order()).await;
    let nobody = MessageId::generate();
    assert!(fx.is_gone(nobody).await);
    assert_eq!(fx.find(Filter::of_ids([nobody])).await, []);
    assert_eq!(fx.find(Filter::of_ids([])).await, []);
    assert_eq!(fx.find(Filter { statuses: Some(vec![]), ..Filter::default() }).await, []);
}

async fn a_cursor_from_nowhere_is_only_a_place(fx: &Fixture) {
    let id = fx.accept(order()).await.id;
    for order in [PageOrder::OldestFirst, PageOrder::NewestFirst] {
        for seq in [i64::MIN, -1, 0, i64::MAX] {
            let page = PageRequest { size: 10, after: Some(Cursor(Seq(seq))), order };
            let found = done(fx.store.query(&Filter::default(), &page).await).items;
            let behind = (order == PageOrder::OldestFirst) == (seq == i64::MAX);
            let expected = if behind { vec![] } else { vec![id] };
            assert_eq!(found.iter().map(|r| r.envelope.id).collect::<Vec<_>>(), expected, "{order:?} {seq}");
        }
    }
}

async fn what_would_hide_is_refused_before_it_gets_here(fx: &Fixture) {
    for bad in ["", " ", "\u{2003}", "a\0b", "a\nb", "\u{85}"] {
        assert!(IdempotencyKey::new(bad).is_err() && TenantName::new(bad).is_err(), "{bad:?}");
    }
    assert!(IdempotencyKey::new("x".repeat(NAME_UNITS_MAX + 1)).is_err());
    assert_eq!(fx.find(Filter::default()).await, []);
}

async fn an_enormous_delay_is_only_late(fx: &Fixture) {
    // The last second of the calendar.
    let at = jiff::Timestamp::from_second(jiff::Timestamp::MAX.as_second()).expect("in range");
    let id = fx.accept(order().due_at(at)).await.id;
    assert_eq!(fx.record(id).await.due_at, Some(at));
    let exchanged = fx.claim(super::claim("order")).await;
    assert_eq!((exchanged.leased, exchanged.next_due), (vec![], Some(at)));
    fx.accept(order().endpoint("other")).await;
    let leased = fx.claim(super::claim("order").at("other")).await.leased;
    let forever = Disposition::Retry { after: std::time::Duration::MAX, reason: Reason::Failed };
    assert_eq!(fx.settle(&leased[0], forever).await, Settled::Applied(Status::Pending));
    assert!(fx.record(leased[0].envelope.id).await.due_at.expect("it is pending") > fx.after(3_600));
}
