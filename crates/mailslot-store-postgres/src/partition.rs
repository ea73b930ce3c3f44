//! The partitions of messages and their outcomes: made ahead, closed after a day, so that retention can drop a day's
//! messages as a whole, and as wide as the load needs, so that they stay few.
//!
//! A partition is a stretch of acceptance order. One is always ready behind the one that is being filled; each is twice
//! as wide as the one before if that was filled within a day. Busy inboxes close theirs every day by letting the numbers
//! skip to the next one; quiet ones need no second one for years.

use crate::error::During;
use crate::link::{Param, Session};
use crate::queries;
use mailslot_core::StoreError;
use mailslot_core::stored::RowReader;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Executor as _};

/// The narrowest partition, and the widest.
const WIDTH_MIN: i64 = 1 << 23;
const WIDTH_MAX: i64 = 1 << 36;

/// A day in microseconds.
const DAY: i64 = 24 * 3600 * 1_000_000;

/// A partition with fewer messages is not worth closing.
const CLOSE_MIN: i64 = 1_000_000;

/// Where the first partition begins.
const FIRST: i64 = 0;

/// The newest partition, and how much of it is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    newest: Option<Newest>,
    last: i64,
    now: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Newest {
    lower: i64,
    upper: i64,
    created_at: i64,
}

impl State {
    /// The bounds of the partition that is missing, if one is: the newest one must be empty still.
    fn missing(&self) -> Option<(i64, i64)> {
        let Some(Newest { lower, upper, created_at }) = self.newest else {
            return Some((FIRST, FIRST + WIDTH_MIN));
        };
        if self.last < lower && lower != FIRST {
            return None;
        }
        if self.last >= upper {
            // Numbers ran on without a partition: the next one begins where they are.
            return Some((self.last + 1, self.last + 1 + WIDTH_MIN));
        }
        let width = upper - lower;
        let was_quick = self.now - created_at < DAY && lower != FIRST;
        let next = if was_quick { width * 2 } else { width / 2 };
        Some((upper, upper + next.clamp(WIDTH_MIN, WIDTH_MAX)))
    }
}

async fn state(session: &mut Session<'_>) -> Result<State, StoreError> {
    let row = session.row(queries::PARTITION_STATE, vec![]).await?;
    let newest = RowReader::new(&row).integer(0).map(|lower| Newest {
        lower,
        upper: row.int(1),
        created_at: row.int(2),
    });
    Ok(State { newest, last: row.int(3), now: row.int(4) })
}

/// Which partition should be there and is not.
pub(crate) async fn missing(session: &mut Session<'_>) -> Result<Option<(i64, i64)>, StoreError> {
    Ok(state(session).await?.missing())
}

/// The statements that make a partition. They attach a finished table, which keeps nobody waiting; making it in place
/// would lock out every accept.
pub(crate) fn creation(lower: i64, upper: i64) -> String {
    let table = |name: &str| {
        format!(
            "CREATE TABLE mailslot.{name}_{lower} (LIKE mailslot.{name} INCLUDING ALL);\n\
             ALTER TABLE mailslot.{name} ATTACH PARTITION mailslot.{name}_{lower} \
             FOR VALUES FROM ({lower}) TO ({upper});\n"
        )
    };
    table("message") + &table("outcome")
}

/// The partitions of a new schema, as statements.
pub(crate) fn first() -> String {
    let record = |lower: i64| {
        let upper = lower + WIDTH_MIN;
        format!(
            "{}INSERT INTO mailslot.partition (lower, upper, created_at) VALUES \
             ({lower}, {upper}, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint);\n",
            creation(lower, upper)
        )
    };
    record(FIRST) + &record(FIRST + WIDTH_MIN)
}

/// Runs statements that were put together from our own words and numbers.
pub(crate) async fn run(
    db: &mut PgConnection,
    schema: &str,
    statements: String,
    operation: &'static str,
) -> Result<(), StoreError> {
    let statements = statements.replace("mailslot.", &format!("{schema}."));
    db.execute(sqlx::raw_sql(AssertSqlSafe(statements))).await.during(operation).map(|_| ())
}

/// The number at which the next partition begins, if the open one should be closed now.
pub(crate) async fn to_close(session: &mut Session<'_>) -> Result<Option<i64>, StoreError> {
    let rows = session.rows(queries::PARTITION_OPEN, vec![]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let (lower, upper, last, now) = (row.int(0), row.int(1), row.int(2), row.int(4));
    let Some(first_at) = RowReader::new(row).integer(3) else { return Ok(None) };
    // Far from the end, so that no accept can have passed it when the numbers skip there.
    let has_room = upper - last > (upper - lower) / 10;
    Ok((now - first_at >= DAY && last - lower >= CLOSE_MIN && has_room).then_some(upper))
}

/// Lets the numbers skip to `next`.
pub(crate) async fn close(session: &mut Session<'_>, next: i64) -> Result<(), StoreError> {
    session.row(queries::PARTITION_SKIP, vec![Param::Int(Some(next))]).await.map(|_| ())
}

/// Makes what is missing, in the transaction of the connection, which holds the lock for changes of the schema.
pub(crate) async fn provide(
    db: &mut PgConnection,
    schema: &str,
    statements: &crate::queries::Statements,
    operation: &'static str,
) -> Result<bool, StoreError> {
    let mut link = crate::link_sqlx::SqlxLink { db, persistent: false };
    let mut session = Session { link: &mut link, statements, operation };
    session.row(queries::SCHEMA_LOCK, vec![]).await?;
    let state = state(&mut session).await?;
    let Some((lower, upper)) = state.missing() else { return Ok(false) };
    let record = vec![Param::Int(Some(lower)), Param::Int(Some(upper)), Param::Int(Some(state.now))];
    session.execute(queries::PARTITION_INSERT, record).await?;
    run(db, schema, creation(lower, upper), operation).await?;
    Ok(true)
}

/// Locks the tables of a partition, and what they are partitions of, before them: in the order of everybody who uses
/// them. Accepts that come while this one waits wait behind it, so it does not wait for long.
pub(crate) fn locking(lower: i64) -> String {
    format!(
        "SET LOCAL lock_timeout = '100ms'; \
         LOCK TABLE ONLY mailslot.message, ONLY mailslot.outcome IN ACCESS EXCLUSIVE MODE; \
         LOCK TABLE mailslot.message_{lower}, mailslot.outcome_{lower} IN ACCESS EXCLUSIVE MODE; \
         SET LOCAL lock_timeout = 0;"
    )
}

/// Drops the tables of a partition, which are locked.
pub(crate) fn removal(lower: i64) -> String {
    format!("DROP TABLE mailslot.message_{lower}; DROP TABLE mailslot.outcome_{lower};")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(newest: Option<(i64, i64)>, last: i64, hours: i64) -> State {
        let newest = newest.map(|(lower, upper)| Newest { lower, upper, created_at: 0 });
        State { newest, last, now: hours * 3600 * 1_000_000 }
    }

    #[test]
    fn one_is_always_ready_behind_the_open_one() {
        assert_eq!(state(None, 0, 0).missing(), Some((0, WIDTH_MIN)));
        assert_eq!(state(Some((0, WIDTH_MIN)), 0, 0).missing(), Some((WIDTH_MIN, 2 * WIDTH_MIN)));
        let second = Some((WIDTH_MIN, 2 * WIDTH_MIN));
        assert_eq!(state(second, WIDTH_MIN - 1, 0).missing(), None);
        assert_eq!(state(second, WIDTH_MIN, 1).missing(), Some((2 * WIDTH_MIN, 4 * WIDTH_MIN)));
        let far = 100 * WIDTH_MIN;
        assert_eq!(state(second, far, 1).missing(), Some((far + 1, far + 1 + WIDTH_MIN)));
    }

    #[test]
    fn the_width_follows_the_load() {
        let wide = Some((1 << 30, 1 << 31));
        assert_eq!(state(wide, 1 << 30, 23).missing(), Some((1 << 31, (1 << 31) + (1 << 31))));
        assert_eq!(state(wide, 1 << 30, 25).missing(), Some((1 << 31, (1 << 31) + (1 << 29))));
        let widest = Some((WIDTH_MAX, 2 * WIDTH_MAX));
        assert_eq!(state(widest, WIDTH_MAX, 1).missing(), Some((2 * WIDTH_MAX, 3 * WIDTH_MAX)));
    }
}
