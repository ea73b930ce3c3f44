//! Every statement of the store, one file each under `queries/`, named noun and verb. Nothing is assembled at run time
//! but the name of the schema.

use sqlx::{AssertSqlSafe, SqlSafeStr as _, SqlStr};
use std::sync::Arc;

/// A statement, by its place in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Query(usize);

macro_rules! queries {
    ($($name:ident => $file:literal),+ $(,)?) => {
        #[expect(non_camel_case_types, reason = "the names of the constants, counted")]
        enum Place { $($name),+ }

        $(pub(crate) const $name: Query = Query(Place::$name as usize);)+

        /// Every statement with its file.
        pub(crate) const ALL: &[(&str, &str)] = &[$(($file, include_str!(concat!("../queries/", $file)))),+];
    };
}

/// The schema that the statements' files name.
pub(crate) const WRITTEN_SCHEMA: &str = "mailslot";

/// The statements for one schema.
#[derive(Debug)]
pub(crate) struct Statements(Vec<SqlStr>);

impl Statements {
    pub(crate) fn of_schema(schema: &str) -> Self {
        Self(ALL.iter().map(|(_, sql)| in_schema(sql, schema)).collect())
    }

    pub(crate) fn get(&self, query: Query) -> &SqlStr {
        &self.0[query.0]
    }
}

/// A statement of ours with another schema's name, which was checked to be a plain identifier.
pub(crate) fn in_schema(sql: &'static str, schema: &str) -> SqlStr {
    if schema == WRITTEN_SCHEMA {
        return SqlStr::from_static(sql);
    }
    let text: Arc<str> = sql.replace("mailslot.", &format!("{schema}.")).into();
    AssertSqlSafe(text).into_sql_str()
}

/// A statement as it is written.
pub(crate) fn text(query: Query) -> &'static str {
    ALL[query.0].1
}

queries! {
    CHECK_ATTEMPT_ENDED_TWICE => "check/attempt_ended_twice.sql",
    CHECK_COPIES => "check/copies.sql",
    CHECK_IN_FLIGHT_BESIDE_HEAD => "check/in_flight_beside_head.sql",
    CHECK_MEMBER_WITHOUT_LEASE => "check/member_without_lease.sql",
    CHECK_ONE_PLACE => "check/one_place.sql",
    CHECK_OUTCOME_NOT_LAST => "check/outcome_not_last.sql",
    CHECK_PARKED_BEHIND_NOTHING => "check/parked_behind_nothing.sql",
    CHECK_PARTITION => "check/partition.sql",
    CHECK_PLACE_OF_NOTHING => "check/place_of_nothing.sql",
    CHECK_SESSION_WITHOUT_HEAD => "check/session_without_head.sql",
    CHECK_TALLY => "check/tally.sql",
    CHECK_UNREADABLE => "check/unreadable.sql",
    CLOCK_BEGIN_SETTLING => "clock/begin_settling.sql",
    CLOCK_READ => "clock/read.sql",
    DELETION_SHARE => "deletion/share.sql",
    DELETION_TAKE => "deletion/take.sql",
    DELETION_WAIT => "deletion/wait.sql",
    DELIVERY_CLAIM => "delivery/claim.sql",
    DELIVERY_FIND_STORED => "delivery/find_stored.sql",
    DELIVERY_FORGET => "delivery/forget.sql",
    DELIVERY_GIVE_UP => "delivery/give_up.sql",
    DELIVERY_KEEP => "delivery/keep.sql",
    DELIVERY_LOOK_UP => "delivery/look_up.sql",
    DELIVERY_PURGE => "delivery/purge.sql",
    DELIVERY_RECORD => "delivery/record.sql",
    KEPT_HANDOFF_DELETE => "kept_handoff/delete.sql",
    KEPT_HANDOFF_FIND => "kept_handoff/find.sql",
    KEPT_HANDOFF_INSERT => "kept_handoff/insert.sql",
    LANE_FIND => "lane/find.sql",
    LANE_INTERN => "lane/intern.sql",
    LANE_OF_ENDPOINT => "lane/of_endpoint.sql",
    LEASE_ANY_EXPIRED => "lease/any_expired.sql",
    LEASE_EXCHANGE => "lease/exchange.sql",
    LEASE_EXTEND => "lease/extend.sql",
    LEASE_FIND_EXPIRED => "lease/find_expired.sql",
    LEASE_HOLDS_SUSPECT => "lease/holds_suspect.sql",
    LEASE_INSERT => "lease/insert.sql",
    LEASE_LIST => "lease/list.sql",
    LEASE_MEMBERS => "lease/members.sql",
    LEASE_REQUEST_CANCEL => "lease/request_cancel.sql",
    LEASE_SETTLE => "lease/settle.sql",
    LEDGER_COUNT_PAGES => "ledger/count_pages.sql",
    LEDGER_DELETE => "ledger/delete.sql",
    LEDGER_DELETE_STRETCH => "ledger/delete_stretch.sql",
    LEDGER_FIND => "ledger/find.sql",
    LEDGER_INSERT => "ledger/insert.sql",
    MESSAGE_ACCEPT => "message/accept.sql",
    MESSAGE_CLAIM => "message/claim.sql",
    MESSAGE_DELETE => "message/delete.sql",
    MESSAGE_FIND_ID => "message/find_id.sql",
    MESSAGE_FIND_LAST => "message/find_last.sql",
    MESSAGE_FIND_NEWEST => "message/find_newest.sql",
    MESSAGE_FIND_OLDEST => "message/find_oldest.sql",
    MESSAGE_FIND_OLDEST_TIME => "message/find_oldest_time.sql",
    MESSAGE_FIND_ORPHANS => "message/find_orphans.sql",
    MESSAGE_FIND_SELECTED_NEWEST => "message/find_selected_newest.sql",
    MESSAGE_FIND_SELECTED_OLDEST => "message/find_selected_oldest.sql",
    MESSAGE_INSERT => "message/insert.sql",
    MESSAGE_KEYS => "message/keys.sql",
    MESSAGE_READ => "message/read.sql",
    MESSAGE_RESERVE => "message/reserve.sql",
    MESSAGE_SLOTS => "message/slots.sql",
    OPERATOR_LOCK => "operator/lock.sql",
    OPERATOR_PIN => "operator/pin.sql",
    OPERATOR_PLAN_ANEW => "operator/plan_anew.sql",
    OPERATOR_READ => "operator/read.sql",
    OPERATOR_TAKE_TIME => "operator/take_time.sql",
    OPERATOR_TRY_LOCK => "operator/try_lock.sql",
    OUTCOME_DELETE => "outcome/delete.sql",
    OUTCOME_FIND_EXPIRED => "outcome/find_expired.sql",
    OUTCOME_FIND_SUSPECTS => "outcome/find_suspects.sql",
    OUTCOME_INSERT => "outcome/insert.sql",
    OUTCOME_READ => "outcome/read.sql",
    PARKED_DELETE => "parked/delete.sql",
    PARKED_INSERT => "parked/insert.sql",
    PARKED_PROMOTE => "parked/promote.sql",
    PARTITION_COUNT_ENDS => "partition/count_ends.sql",
    PARTITION_DELETE => "partition/delete.sql",
    PARTITION_FIND_CLOSED => "partition/find_closed.sql",
    PARTITION_FIND_YOUNG => "partition/find_young.sql",
    PARTITION_INSERT => "partition/insert.sql",
    PARTITION_OPEN => "partition/open.sql",
    PARTITION_SKIP => "partition/skip.sql",
    PARTITION_STATE => "partition/state.sql",
    READY_DELETE => "ready/delete.sql",
    READY_INSERT => "ready/insert.sql",
    READY_NEXT_DUE => "ready/next_due.sql",
    READY_OLDEST_DUE => "ready/oldest_due.sql",
    READY_PICK => "ready/pick.sql",
    REDRIVE_INSERT => "redrive/insert.sql",
    REDRIVE_LIST => "redrive/list.sql",
    REDRIVE_UPDATE => "redrive/update.sql",
    SCHEMA_CREATE => "schema/create.sql",
    SCHEMA_FIND_MARK => "schema/find_mark.sql",
    SCHEMA_INSPECT => "schema/inspect.sql",
    SCHEMA_LEAVE_MARK => "schema/leave_mark.sql",
    SCHEMA_LOCK => "schema/lock.sql",
    SCHEMA_OBJECTS => "schema/objects.sql",
    SCHEMA_RECORD => "schema/record.sql",
    SCHEMA_VERSION => "schema/version.sql",
    SESSION_ADVANCE => "session/advance.sql",
    SESSION_DELETE_HEADLESS => "session/delete_headless.sql",
    SESSION_DELETE_RELEASED => "session/delete_released.sql",
    SESSION_FIND => "session/find.sql",
    SESSION_LIST => "session/list.sql",
    SESSION_LOCK => "session/lock.sql",
    SESSION_LOCK_RELEASED => "session/lock_released.sql",
    SESSION_SET_HEADS => "session/set_heads.sql",
    SUSPENDED_DELETE => "suspended/delete.sql",
    SUSPENDED_FIND_ID => "suspended/find_id.sql",
    SUSPENDED_INSERT => "suspended/insert.sql",
    TALLY_ADD => "tally/add.sql",
    TALLY_FOLD => "tally/fold.sql",
    TALLY_LIST => "tally/list.sql",
    TALLY_MEND => "tally/mend.sql",
    WAKEUP_NOTIFY => "wakeup/notify.sql",
}
