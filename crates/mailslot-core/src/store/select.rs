//! Selecting messages for an operator's call: the part of it that is the same in every store.

use super::filter::{Cursor, Filter, PageOrder, PageRequest};
use super::operator::Change;
use crate::id::Seq;
use crate::state::Status;

/// Which messages a store has to find, and in which order.
#[derive(Debug, Clone)]
pub struct Selection<'f> {
    /// Those that match this, but for its states.
    pub filter: &'f Filter,
    /// In one of these states; `None`: in any.
    pub statuses: Option<Vec<Status>>,
    /// After this place and before that one, both outside.
    pub between: (i64, i64),
    /// The order.
    pub order: PageOrder,
    /// How many at most.
    pub limit: usize,
    /// Leaves out messages that someone asked to cancel.
    pub without_cancel_requests: bool,
}

/// What selects few rows: a store's statement should begin with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Driver {
    /// The ids.
    Ids,
    /// The dead letters.
    Dead,
    /// The places of messages that have not ended.
    Live,
    /// Nothing: a walk through all messages.
    Everything,
}

impl<'f> Selection<'f> {
    /// The first `limit` that match, in acceptance order.
    pub fn oldest(filter: &'f Filter, limit: usize) -> Self {
        Self {
            filter,
            statuses: filter.statuses.clone(),
            between: (i64::MIN, i64::MAX),
            order: PageOrder::OldestFirst,
            limit,
            without_cancel_requests: false,
        }
    }

    /// A page, and one more message that tells whether there is another page: see [`PageRequest::cut`].
    pub fn page(filter: &'f Filter, page: &PageRequest) -> Self {
        let mut selection = Self { order: page.order, ..Self::oldest(filter, page.size + 1) };
        match (page.order, page.after) {
            (_, None) => {}
            (PageOrder::OldestFirst, Some(Cursor(Seq(after)))) => selection.between.0 = after,
            (PageOrder::NewestFirst, Some(Cursor(Seq(before)))) => selection.between.1 = before,
        }
        selection
    }

    /// The first `limit` to which a change can apply.
    pub fn to_change(change: Change, filter: &'f Filter, limit: usize) -> Self {
        let wanted = |status: &Status| filter.statuses.as_ref().is_none_or(|wanted| wanted.contains(status));
        Self {
            statuses: Some(change.statuses().filter(wanted).collect()),
            without_cancel_requests: true,
            ..Self::oldest(filter, limit)
        }
    }

    /// The first `limit` dead letters after one place and up to another, whatever states the filter names.
    pub fn dead_letters(filter: &'f Filter, (after, last): (i64, i64), limit: usize) -> Self {
        Self {
            statuses: Some(vec![Status::DeadLettered]),
            between: (after, last.saturating_add(1)),
            ..Self::oldest(filter, limit)
        }
    }

    /// What selects few rows.
    pub fn driver(&self) -> Driver {
        match self.statuses.as_deref() {
            _ if self.filter.ids.is_some() => Driver::Ids,
            Some([Status::DeadLettered]) => Driver::Dead,
            Some(statuses) if statuses.iter().all(|status| !status.is_terminal()) => Driver::Live,
            _ => Driver::Everything,
        }
    }
}

impl PageRequest {
    /// Cuts what [`Selection::page`] found, in the page's order, to the page. Returns where the next one begins.
    pub fn cut(&self, seqs: &mut Vec<i64>) -> Option<Cursor> {
        let more = seqs.len() > self.size;
        seqs.truncate(self.size);
        seqs.last().filter(|_| more).map(|seq| Cursor(Seq(*seq)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_begins_with_what_selects_few() {
        let driver = |ids, statuses: Option<&[Status]>| {
            let filter = Filter {
                ids: if ids { Some(Vec::new()) } else { None },
                statuses: statuses.map(<[_]>::to_vec),
                ..Filter::default()
            };
            Selection::oldest(&filter, 1).driver()
        };
        assert_eq!(driver(true, Some(&[Status::DeadLettered])), Driver::Ids);
        assert_eq!(driver(false, Some(&[Status::DeadLettered])), Driver::Dead);
        assert_eq!(driver(false, Some(&[Status::Leased, Status::Parked])), Driver::Live);
        assert_eq!(driver(false, Some(&[Status::Leased, Status::Completed])), Driver::Everything);
        assert_eq!(driver(false, None), Driver::Everything);
    }

    #[test]
    fn a_page_ends_where_the_next_one_begins() {
        let page = |order| PageRequest { size: 2, after: Some(Cursor(Seq(9))), order };
        let filter = Filter::default();
        let oldest = Selection::page(&filter, &page(PageOrder::OldestFirst));
        assert_eq!((oldest.between, oldest.limit), ((9, i64::MAX), 3));
        assert_eq!(Selection::page(&filter, &page(PageOrder::NewestFirst)).between, (i64::MIN, 9));
        let cut = |mut seqs: Vec<i64>| (page(PageOrder::OldestFirst).cut(&mut seqs), seqs);
        assert_eq!(cut(vec![10, 11, 12]), (Some(Cursor(Seq(11))), vec![10, 11]));
        assert_eq!(cut(vec![10, 11]), (None, vec![10, 11]));
    }

    #[test]
    fn a_change_takes_only_states_that_it_applies_to() {
        let statuses = Some(vec![Status::Pending, Status::Completed, Status::DeadLettered]);
        let filter = Filter { statuses, ..Filter::default() };
        let of = |change| Selection::to_change(change, &filter, 1).statuses;
        assert_eq!(of(Change::Requeue), Some(vec![Status::DeadLettered]));
        assert_eq!(of(Change::Cancel), Some(vec![Status::Pending]));
        assert_eq!(of(Change::Purge), filter.statuses);
        assert_eq!(Selection::dead_letters(&filter, (3, i64::MAX), 1).between, (3, i64::MAX));
    }
}
