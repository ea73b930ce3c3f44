//! A store and the model of it, moved by the same operations.

use super::draft::Draft;
use super::op::{Answer, Fence, Op, Verdict};
use super::view::{self, both, same, same_lists};
use crate::invariant::broken_invariants;
use crate::message::valid;
use crate::store::{Claim, Fixture, Opened, TestStore};
use jiff::{SignedDuration, Timestamp};
use mailslot_core::store::{
    AppendGroup, Exchange, Exchanged, ExtendRequest, Extended, Filter, HandoffResult, LeaseRequest, Leased,
    PageOrder, PageRequest, Redrive, RedriveAction, RedriveId, RedriveSpec, RetentionPolicy,
};
use mailslot_core::{
    Attempt, Clock as _, Disposition, EndpointName, ErrorText, Handoff, InboxStore as _, LeaseToken,
    ManualClock, MemoryStore, MessageId, OperatorStore as _, Owner, Reason, Settlement,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// More than a case ever stores.
const MANY: usize = 1_000;

type Compared = Result<(), String>;

pub(super) struct Pair {
    model: Arc<MemoryStore>,
    fixture: Fixture,
    clock: Arc<ManualClock>,
    owners: [Owner; 2],
    /// Everything that was ever leased, as the model and as the store gave it.
    leased: Vec<(Leased, Leased)>,
    /// The ids of everything that was ever offered.
    offered: Vec<MessageId>,
    model_redrives: Vec<RedriveId>,
    store_redrives: Vec<RedriveId>,
}

impl Pair {
    pub(super) fn new(opened: Opened, clock: Arc<ManualClock>) -> Self {
        Self {
            model: Arc::new(MemoryStore::with_clock(clock.clone())),
            fixture: Fixture::new(opened, Arc::clone(&clock)),
            clock,
            owners: ["first", "second"].map(|label| valid(Owner::new(label))),
            leased: Vec::new(),
            offered: Vec::new(),
            model_redrives: Vec::new(),
            store_redrives: Vec::new(),
        }
    }

    fn store(&self) -> &dyn TestStore {
        &*self.fixture.store
    }

    pub(super) async fn apply(&mut self, op: Op) -> Compared {
        match op {
            Op::Append(groups) => self.append(groups).await,
            Op::Exchange { settle, claim, due_before } => self.exchange(settle, claim, due_before).await,
            Op::Extend { leases, seconds } => self.extend(leases, seconds).await,
            Op::Recover { limit } => {
                compare("recoveries", self.model.recover(limit).await, self.store().recover(limit).await)
            }
            Op::Change { change, filter, limit } => {
                let model = self.model.change(change, &filter, limit).await;
                compare("changes", model, self.store().change(change, &filter, limit).await)
            }
            Op::SettleHandoff { message, succeeds } => self.settle_handoff(message, succeeds).await,
            Op::CreateRedrive { filter, rate } => self.create_redrive(RedriveSpec { filter, rate }).await,
            Op::ActOnRedrive { redrive, action } => self.act_on_redrive(redrive, action).await,
            Op::StepRedrives => self.step_redrives().await,
            Op::Retain { endpoint, policy, limit } => {
                let endpoint = endpoint.map(|name| valid(EndpointName::new(name)));
                self.retain(endpoint.as_ref(), &policy, limit).await
            }
            Op::PassTime { micros } => {
                self.clock.advance(SignedDuration::from_micros(micros));
                Ok(())
            }
            Op::Query { filter, newest_first, size } => self.query(&filter, newest_first, size).await,
            Op::Get { message } => match pick(&self.offered, message) {
                Some(id) => self.get(*id).await,
                None => Ok(()),
            },
            Op::Reopen => {
                if self.fixture.can_reopen() {
                    self.fixture.reopen().await;
                }
                Ok(())
            }
        }
    }

    async fn append(&mut self, groups: Vec<Vec<Draft>>) -> Compared {
        let groups: Vec<AppendGroup> = groups.into_iter().map(|drafts| self.group(drafts)).collect();
        let model = self.model.append(groups.clone()).await;
        compare("receipts", model, self.store().append(groups).await)
    }

    fn group(&mut self, drafts: Vec<Draft>) -> AppendGroup {
        let build = |draft: Draft| {
            let message = draft.build(self.offered.len() as u128);
            self.offered.push(message.id);
            message
        };
        AppendGroup { messages: drafts.into_iter().map(build).collect() }
    }

    async fn exchange(
        &mut self,
        settle: Vec<Answer>,
        claim: Option<(bool, Claim)>,
        due_before: Option<i64>,
    ) -> Compared {
        let settlements: Vec<_> = settle.iter().filter_map(|answer| self.settlements(answer)).collect();
        let (for_model, for_store): (Vec<_>, Vec<_>) = settlements.into_iter().unzip();
        let lease = claim.map(|(second, claim)| self.lease_request(second, claim, due_before));
        let model = self.model.exchange(Exchange { settlements: for_model, lease: lease.clone() }).await;
        let store = self.store().exchange(Exchange { settlements: for_store, lease }).await;
        let Some((model, store)) = both(model, store)? else { return Ok(()) };
        self.compare_exchanged(&model, &store)?;
        self.leased.extend(model.leased.into_iter().zip(store.leased));
        Ok(())
    }

    fn lease_request(&self, second: bool, claim: Claim, due_before: Option<i64>) -> LeaseRequest {
        let ago = |seconds| self.clock.now() - SignedDuration::from_secs(seconds);
        let due_until: Option<Timestamp> = due_before.map(ago);
        LeaseRequest { due_until, ..claim.request(&self.owners[usize::from(second)]) }
    }

    fn settlements(&self, answer: &Answer) -> Option<(Settlement, Settlement)> {
        let (model, store) = pick(&self.leased, answer.leased)?;
        Some((self.settlement(model, answer), self.settlement(store, answer)))
    }

    fn settlement(&self, leased: &Leased, answer: &Answer) -> Settlement {
        let Attempt { generation, number } = leased.attempt;
        let stranger = self.owners.iter().map(Owner::session).find(|owner| *owner != leased.lease.owner);
        let mut settlement = Settlement {
            lease: leased.lease,
            seq: leased.envelope.seq,
            attempt: leased.attempt,
            disposition: disposition(answer.verdict),
            error: Some(ErrorText::new("an error")),
        };
        match answer.fence {
            Fence::Right => {}
            Fence::WrongOwner => {
                let owner = stranger.unwrap_or(leased.lease.owner);
                settlement.lease = LeaseToken { owner, ..leased.lease };
            }
            Fence::WrongAttempt => settlement.attempt = Attempt { generation, number: number + 1 },
        }
        settlement
    }

    fn compare_exchanged(&self, model: &Exchanged, store: &Exchanged) -> Compared {
        same("settlements", &model.settled, &store.settled)?;
        let leased = |exchanged: &Exchanged| exchanged.leased.iter().map(view::leased).collect::<Vec<_>>();
        same_lists("leased messages", &leased(model), &leased(store))?;
        same("refused messages", &model.refused, &store.refused)?;
        // How many were held back depends on how far a store looked; whether any were does not.
        same("held back", model.held_back > 0, store.held_back > 0)?;
        let times = |exchanged: &Exchanged| (exchanged.now, exchanged.until, exchanged.next_due);
        same("times (now, until, next due)", times(model), times(store))?;
        let last = self.leased.iter().map(|(_, leased)| leased.lease.generation).max();
        let tokens: BTreeSet<_> = store.leased.iter().map(|leased| leased.lease.generation).collect();
        if tokens.len() > 1 || tokens.first() <= last.as_ref() && !tokens.is_empty() {
            return Err(format!("a claim got the tokens {tokens:?} after {last:?}"));
        }
        Ok(())
    }

    async fn extend(&self, leases: Vec<usize>, seconds: u64) -> Compared {
        let picked: Vec<_> = leases.into_iter().filter_map(|number| pick(&self.leased, number)).collect();
        let duration = Duration::from_secs(seconds);
        let of_model = picked.iter().map(|(model, _)| model.lease).collect();
        let of_store = picked.iter().map(|(_, store)| store.lease).collect();
        let model = self.model.extend(ExtendRequest { leases: of_model, duration }).await;
        let store = self.store().extend(ExtendRequest { leases: of_store, duration }).await;
        let Some((model, store)) = both(model, store)? else { return Ok(()) };
        let by_model: Vec<_> = model.iter().map(|answer| self.extended(answer, |pair| &pair.0)).collect();
        let by_store: Vec<_> = store.iter().map(|answer| self.extended(answer, |pair| &pair.1)).collect();
        same("extensions", by_model, by_store)
    }

    /// An extension, with messages instead of their places.
    fn extended(
        &self,
        answer: &Extended,
        side: impl Fn(&(Leased, Leased)) -> &Leased,
    ) -> Option<(Timestamp, BTreeSet<usize>)> {
        let Extended::Held { until, cancel_requested } = answer else { return None };
        let place = |seq| self.leased.iter().position(|pair| side(pair).envelope.seq == seq);
        Some((*until, cancel_requested.iter().filter_map(|&seq| place(seq)).collect()))
    }

    async fn settle_handoff(&self, message: usize, succeeds: bool) -> Compared {
        let Some(&id) = pick(&self.offered, message) else { return Ok(()) };
        let failed = || HandoffResult::Failed(ErrorText::new("failed elsewhere"));
        let result = || if succeeds { HandoffResult::Completed } else { failed() };
        let model = self.model.settle_handoff(id, result()).await;
        compare("handoffs", model, self.store().settle_handoff(id, result()).await)
    }

    async fn create_redrive(&mut self, spec: RedriveSpec) -> Compared {
        let model = self.model.create_redrive(spec.clone()).await;
        let Some((model, store)) = both(model, self.store().create_redrive(spec).await)? else {
            return Ok(());
        };
        same("redrives", view::redrive(&model, &[]), view::redrive(&store, &[]))?;
        self.model_redrives.push(model.id);
        self.store_redrives.push(store.id);
        Ok(())
    }

    async fn act_on_redrive(&self, number: usize, action: RedriveAction) -> Compared {
        let Some(&of_model) = pick(&self.model_redrives, number) else { return Ok(()) };
        let Some(&of_store) = pick(&self.store_redrives, number) else { return Ok(()) };
        let model = self.model.act_on_redrive(of_model, action).await;
        let Some((model, store)) = both(model, self.store().act_on_redrive(of_store, action).await)? else {
            return Ok(());
        };
        let view = |redrive: Option<_>| redrive.map(|redrive| view::redrive(&redrive, &[]));
        same("redrives", view(model), view(store))
    }

    async fn step_redrives(&self) -> Compared {
        let model = self.model.step_redrives().await;
        let Some((model, store)) = both(model, self.store().step_redrives().await)? else { return Ok(()) };
        self.compare_redrives(&model, &store, true)
    }

    fn compare_redrives(&self, model: &[Redrive], store: &[Redrive], any_order: bool) -> Compared {
        let mut model: Vec<_> = model.iter().map(|one| view::redrive(one, &self.model_redrives)).collect();
        let mut store: Vec<_> = store.iter().map(|one| view::redrive(one, &self.store_redrives)).collect();
        if any_order {
            model.sort_by_key(|(place, _)| *place);
            store.sort_by_key(|(place, _)| *place);
        }
        same("redrives", model, store)
    }

    /// Deletes until nothing is over. Which messages go first is the store's choice.
    async fn retain(
        &self,
        endpoint: Option<&EndpointName>,
        policy: &RetentionPolicy,
        limit: usize,
    ) -> Compared {
        loop {
            let model = self.model.retain(endpoint, policy, limit).await;
            let store = self.store().retain(endpoint, policy, limit).await;
            let Some((model, store)) = both(model, store)? else { return Ok(()) };
            same("deletions", model, store)?;
            if model == 0 {
                return Ok(());
            }
        }
    }

    async fn query(&self, filter: &Filter, newest_first: bool, size: usize) -> Compared {
        let order = if newest_first { PageOrder::NewestFirst } else { PageOrder::OldestFirst };
        let mut of_model = PageRequest { size, after: None, order };
        let mut of_store = of_model.clone();
        loop {
            let model = self.model.query(filter, &of_model).await;
            let Some((model, store)) = both(model, self.store().query(filter, &of_store).await)? else {
                return Ok(());
            };
            let model_items: Vec<_> = model.items.iter().map(view::record).collect();
            let store_items: Vec<_> = store.items.iter().map(view::record).collect();
            same_lists("pages", &model_items, &store_items)?;
            same("whether pages follow", model.next.is_some(), store.next.is_some())?;
            if model.next.is_none() {
                return Ok(());
            }
            (of_model.after, of_store.after) = (model.next, store.next);
        }
    }

    async fn get(&self, id: MessageId) -> Compared {
        let Some((model, store)) = both(self.model.get(id).await, self.store().get(id).await)? else {
            return Ok(());
        };
        let details = |found: &[_]| found.iter().map(view::detail).collect::<Vec<_>>();
        same_lists("details", &details(&model), &details(&store))
    }

    /// Compares all content, and checks the invariants of the store.
    pub(super) async fn compare_everything(&self) -> Compared {
        self.query(&Filter::default(), false, MANY).await?;
        for &id in &self.offered.iter().copied().collect::<BTreeSet<_>>() {
            self.get(id).await?;
        }
        if let Some((model, store)) = both(self.model.counts().await, self.store().counts().await)? {
            same("counts", view::counts(model), view::counts(store))?;
        }
        for blocked_only in [false, true] {
            let model = self.model.sessions(blocked_only, MANY).await;
            if let Some((model, store)) = both(model, self.store().sessions(blocked_only, MANY).await)? {
                same("sessions", view::sessions(model), view::sessions(store))?;
            }
        }
        if let Some((model, store)) = both(self.model.leases(MANY).await, self.store().leases(MANY).await)? {
            let leases = |leases: Vec<_>| leases.iter().map(view::lease_record).collect::<Vec<_>>();
            same("leases", leases(model), leases(store))?;
        }
        if let Some((model, store)) = both(self.model.redrives().await, self.store().redrives().await)? {
            self.compare_redrives(&model, &store, false)?;
        }
        self.check_invariants().await
    }

    async fn check_invariants(&self) -> Compared {
        for store in [&*self.model as &dyn TestStore, self.store()] {
            let broken = broken_invariants(store).await.map_err(|error| error.to_string())?;
            same("invariants", Vec::new(), broken)?;
        }
        Ok(())
    }
}

fn compare<T: PartialEq + std::fmt::Debug>(
    what: &str,
    model: Result<T, mailslot_core::StoreError>,
    store: Result<T, mailslot_core::StoreError>,
) -> Compared {
    both(model, store)?.map_or(Ok(()), |(model, store)| same(what, model, store))
}

fn pick<T>(from: &[T], number: usize) -> Option<&T> {
    from.get(number.checked_rem(from.len())?)
}

fn disposition(verdict: Verdict) -> Disposition {
    match verdict {
        Verdict::Complete => Disposition::Complete,
        Verdict::Retry { seconds } => {
            Disposition::Retry { after: Duration::from_secs(seconds), reason: Reason::Failed }
        }
        Verdict::DeadLetter => Disposition::DeadLetter { reason: Reason::Permanent },
        Verdict::Skip => Disposition::Skip { reason: Reason::Vetoed },
        Verdict::Suspend => Disposition::Suspend(valid(Handoff::new("waits for the bank"))),
        Verdict::Release => Disposition::Release,
    }
}
