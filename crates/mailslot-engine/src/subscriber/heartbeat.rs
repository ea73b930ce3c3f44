//! Answering probes: whether a subscriber is there, whatever its sessions and its store are doing.

use super::Core;
use mailslot_core::broker::{BrokerMessage, CONTRACT_HEADER};
use std::collections::BTreeMap;

/// The contract of an answer.
const ANSWER: &str = "mailslot.heartbeat-answer@1";

/// Counts a probe and answers it, if it says where to and somebody can. An answer that fails is not tried again: the next
/// probe is.
pub(super) async fn answer(core: &Core, reply_to: Option<String>, correlation_id: Option<String>) {
    if let (Some(reply_to), Some(publisher)) = (reply_to, &core.answers) {
        let content = serde_json::json!({ "endpoint": core.engine.endpoint.as_str() });
        let message = BrokerMessage {
            correlation_id,
            content_type: Some("application/json".to_owned()),
            headers: BTreeMap::from([(CONTRACT_HEADER.to_owned(), ANSWER.to_owned())]),
            payload: content.to_string().into(),
            ..BrokerMessage::default()
        };
        if let Some(Err(error)) = publisher.publish(&reply_to, vec![message]).await.pop() {
            core.counters.add(|counts| counts.broker_errors += 1);
            tracing::warn!(endpoint = %core.engine.endpoint, %error, "a heartbeat could not be answered");
        }
    }
    core.counters.add(|counts| counts.heartbeats += 1);
}
