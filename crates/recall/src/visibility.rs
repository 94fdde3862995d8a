//! Tells where search results are, seen from the current branch. It checks each result by itself and reads
//! the branch only if it must.

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::Scope;
use lcm_model::agent_of_session;
use lcm_model::error::Result;
use lcm_model::ids::{ConversationId, MessageId, SummaryId};
use lcm_store::branch::Cover;
use lcm_store::{Around, RowRanges, View};

/// Where something is, seen from the current branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// On it.
    Here,
    /// On another branch of the session, or a summary that was superseded.
    OtherBranch,
    /// In another session of the project.
    OtherSession,
    /// On a branch of another session of Pi that does not go on.
    OtherSessionBranch,
}

/// A branch whose entries are not read unless needed.
pub struct Visibility<'a> {
    view: &'a View<'a>,
    scope: Cow<'a, Scope>,
    row_ranges: RowRanges,
    branch: OnceCell<Cover>,
    /// The current branches of other sessions, as far as they were asked for.
    others: RefCell<HashMap<ConversationId, RowRanges>>,
}

impl<'a> Visibility<'a> {
    pub fn new(view: &'a View<'a>, scope: &'a Scope) -> Result<Self> {
        let row_ranges = match &scope.leaf {
            Some(leaf) => view.messages().row_ranges(scope.conversation, leaf)?,
            None => RowRanges::default(),
        };
        Ok(Self::of(view, Cow::Borrowed(scope), row_ranges))
    }

    /// The current branch of a session, the one that goes on when it is opened.
    pub fn of_session(view: &'a View<'a>, session: ConversationId) -> Result<Self> {
        let scope = Scope::at(session, view.messages().last_entry(session)?);
        let row_ranges = Visibility::new(view, &scope)?.row_ranges;
        Ok(Self::of(view, Cow::Owned(scope), row_ranges))
    }

    fn of(view: &'a View<'a>, scope: Cow<'a, Scope>, row_ranges: RowRanges) -> Self {
        Self { view, scope, row_ranges, branch: OnceCell::new(), others: RefCell::default() }
    }

    /// The whole branch; costs its length.
    pub fn branch(&self) -> Result<&Cover> {
        if let Some(branch) = self.branch.get() {
            return Ok(branch);
        }
        let branch = Cover::read(self.view, self.scope.conversation, self.scope.leaf.as_deref())?;
        Ok(self.branch.get_or_init(|| branch))
    }

    /// Whether this original message is on the branch.
    pub fn shows(&self, message: MessageId) -> Result<bool> {
        self.view.messages().is_on(&self.row_ranges, self.scope.conversation, message)
    }

    /// Where a message is.
    pub fn place(&self, message: MessageId) -> Result<Location> {
        if self.shows(message)? {
            return Ok(Location::Here);
        }
        let sessions = self.view.messages().sessions_of(message)?;
        if sessions.contains(&self.scope.conversation) {
            return Ok(Location::OtherBranch);
        }
        for session in sessions {
            if self.goes_on(session, message)? {
                return Ok(Location::OtherSession);
            }
        }
        Ok(Location::OtherSessionBranch)
    }

    /// Whether a message is on another session's current branch. Other agents' sub-agents always have one of their own.
    fn goes_on(&self, session: ConversationId, message: MessageId) -> Result<bool> {
        let messages = self.view.messages();
        if agent_of_session(&messages.session_id(session)?).is_some() {
            return Ok(true);
        }
        let mut others = self.others.borrow_mut();
        let current = match others.entry(session) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(messages.current_branch(session)?),
        };
        messages.is_on(current, session, message)
    }

    /// Where the last message of a summary's span is.
    pub fn place_of_summary(&self, summary: SummaryId) -> Result<Location> {
        self.place(self.view.messages().original(self.view.summaries().span(summary)?.last)?)
    }

    /// The messages before and after a message.
    pub fn around(&self, message: MessageId, most: usize) -> Result<Around> {
        self.view.messages().around(&self.row_ranges, self.scope.conversation, message, most)
    }

    /// The leaf summary of a message on this branch.
    pub fn leaf_over(&self, message: MessageId) -> Result<Option<SummaryId>> {
        if self.row_ranges.is_edited {
            return Ok(self.branch()?.leaf_over(message));
        }
        match self.view.summaries().leaves_over(message)?.as_slice() {
            [] => Ok(None),
            [leaf] if self.view.summaries().is_unbroken(*leaf)? => {
                Ok(self.shows(self.view.summaries().span(*leaf)?.last)?.then_some(*leaf))
            }
            _ => Ok(self.branch()?.leaf_over(message)),
        }
    }

    /// The current request. The model sees it already, and because it contains the wanted words, it would be
    /// the best result of every search. `None` until it is stored: the last stored one was answered.
    pub(crate) fn current_request(&self) -> Result<Option<MessageId>> {
        if self.scope.newer_request {
            return Ok(None);
        }
        if self.row_ranges.is_edited {
            let branch = self.branch()?;
            let last = branch.visible.iter().rev().find(|visible| visible.is_request);
            return Ok(last.map(|visible| visible.seen).filter(|id| branch.leaf_over(*id).is_none()));
        }
        match self.view.messages().last_request(&self.row_ranges)? {
            Some(request) if self.leaf_over(request)?.is_none() => Ok(Some(request)),
            _ => Ok(None),
        }
    }

    /// The message with the call that asks. The model has just written the wanted words there: as an argument, in a
    /// script, or next to the call. `None` until it is stored.
    pub fn calling(&self) -> Result<Option<MessageId>> {
        let Some(call) = &self.scope.call else { return Ok(None) };
        let last = self.view.messages().last_answer(&self.row_ranges)?;
        // Unreadable messages are left to the doctor.
        let makes =
            |id: &MessageId| self.view.messages().parsed(*id).is_ok_and(|message| message.makes(call));
        Ok(last.filter(makes))
    }
}
