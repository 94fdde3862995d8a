//! A branch as ranges of consecutive rows. They tell whether a message is on the branch without reading the
//! branch.
//!
//! A session without branches is stored row after row, each the child of the one before, so a branch is given
//! by its gaps.

use std::ops::RangeInclusive;

use rusqlite::params;

use crate::Messages;
use crate::columns::Queries as _;
use lcm_model::error::Result;
use lcm_model::ids::{ConversationId, MessageId};

/// The messages before and after a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Around {
    /// Those before it, oldest first.
    pub before: Vec<MessageId>,
    /// Those after it, oldest first.
    pub after: Vec<MessageId>,
}

/// The entries of a branch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowRanges {
    /// Rows of entries, from the leaf's range to the root's.
    rows: Vec<RangeInclusive<i64>>,
    /// Whether there is a context edit among them, so that the model sees other messages than the original
    /// ones.
    pub is_edited: bool,
}

impl RowRanges {
    fn hold(&self, entry: i64) -> bool {
        self.rows.iter().any(|rows| rows.contains(&entry))
    }

    /// The next entry on the branch. The ranges are sorted from the leaf's to the root's.
    fn next(&self, entry: i64) -> Option<i64> {
        let at = self.rows.iter().position(|rows| rows.contains(&entry))?;
        if entry < *self.rows[at].end() {
            Some(entry + 1)
        } else {
            Some(*self.rows[at.checked_sub(1)?].start())
        }
    }
}

impl Messages<'_> {
    /// The branch that ends at `leaf`; empty if the store doesn't know it.
    pub fn row_ranges(&self, conversation: ConversationId, leaf: &str) -> Result<RowRanges> {
        let mut found = RowRanges::default();
        let mut next = self.entry_row(conversation, leaf)?.map(|id| id.0);
        let sql = "SELECT id, parent_id, kind = 2 FROM entries
                    WHERE conversation_id = ?2 AND id <= ?1 AND (parent_id IS NOT id - 1 OR kind = 2)
                    ORDER BY id DESC LIMIT 1";
        while let Some(last) = next {
            let mut from = last;
            next = loop {
                let (id, parent, is_edit): (i64, Option<i64>, bool) =
                    self.one(sql, params![from, conversation])?;
                found.is_edited |= is_edit;
                from = id - 1;
                if parent != Some(from) {
                    found.rows.push(id..=last);
                    // Parents have lower rows than their children, except in a damaged file.
                    break parent.filter(|parent| *parent < id);
                }
            };
        }
        Ok(found)
    }

    /// The row of a session's last entry: the end of its last run of rows.
    pub(crate) fn last_row(&self, conversation: ConversationId) -> Result<Option<i64>> {
        let begun: Option<i64> = self.first(
            "SELECT id FROM entries WHERE conversation_id = ?1 AND (parent_id IS NOT id - 1 OR kind = 2)
              ORDER BY id DESC LIMIT 1",
            [conversation],
        )?;
        let Some(mut last) = begun else { return Ok(None) };
        let mut behind = self.last_rows()?.entry + 1;
        while last + 1 < behind {
            let middle = last + (behind - last) / 2;
            let of: Option<ConversationId> =
                self.first("SELECT conversation_id FROM entries WHERE id = ?1", [middle])?;
            *(if of == Some(conversation) { &mut last } else { &mut behind }) = middle;
        }
        Ok(Some(last))
    }

    /// Whether the branch shows this message.
    pub fn is_on(
        &self,
        branch: &RowRanges,
        conversation: ConversationId,
        message: MessageId,
    ) -> Result<bool> {
        let entries: Vec<i64> = self.all(
            "SELECT id FROM entries WHERE message_id = ?1 AND conversation_id = ?2 AND kind = 1",
            params![message, conversation],
        )?;
        Ok(entries.iter().any(|entry| branch.hold(*entry)))
    }

    /// The messages around a message, at most `most` on each side: on this branch if it shows the message, else on the
    /// current branch of its session or of another session, else on any. Messages hidden from the model are skipped.
    pub fn around(
        &self,
        branch: &RowRanges,
        conversation: ConversationId,
        message: MessageId,
        most: usize,
    ) -> Result<Around> {
        let mut around = Around::default();
        let Some(entry) = self.entry_showing(branch, conversation, message)? else { return Ok(around) };
        let said = |entry: i64| -> Result<(Option<i64>, Option<MessageId>)> {
            self.one(
                "SELECT e.parent_id, m.id FROM entries e
                   LEFT JOIN messages m ON m.id = e.message_id AND e.kind = 1 AND m.kind = 0
                  WHERE e.id = ?1",
                [entry],
            )
        };
        let mut next = said(entry)?.0;
        while let (Some(at), true) = (next, around.before.len() < most) {
            let (parent, message) = said(at)?;
            around.before.extend(message);
            next = parent;
        }
        around.before.reverse();
        let session = || self.one("SELECT conversation_id FROM entries WHERE id = ?1", [entry]);
        let own = if branch.hold(entry) { None } else { Some(self.current_branch(session()?)?) };
        let branch = own.as_ref().unwrap_or(branch);
        let is_on_it = branch.hold(entry);
        let follow = |at: i64| if is_on_it { Ok(branch.next(at)) } else { self.first_child(at) };
        let mut next = follow(entry)?;
        while let (Some(at), true) = (next, around.after.len() < most) {
            around.after.extend(said(at)?.1);
            next = follow(at)?;
        }
        Ok(around)
    }

    /// An entry that shows a message: on the branch, else in the session, else anywhere.
    fn entry_showing(
        &self,
        branch: &RowRanges,
        conversation: ConversationId,
        message: MessageId,
    ) -> Result<Option<i64>> {
        let entries: Vec<i64> = self.all(
            "SELECT id FROM entries WHERE message_id = ?1 AND kind = 1
                  ORDER BY conversation_id = ?2 DESC, id DESC",
            params![message, conversation],
        )?;
        Ok(entries.iter().copied().find(|entry| branch.hold(*entry)).or_else(|| entries.first().copied()))
    }

    /// The current branch of a session, the one that goes on when it is opened.
    pub fn current_branch(&self, session: ConversationId) -> Result<RowRanges> {
        let leaf = self.last_entry(session)?;
        leaf.map_or_else(|| Ok(RowRanges::default()), |leaf| self.row_ranges(session, &leaf))
    }

    /// The first child of an entry, if possible one in which something is said: another agent's records hang beside its messages.
    fn first_child(&self, entry: i64) -> Result<Option<i64>> {
        self.first(
            "WITH children AS (
               SELECT id, message_id FROM entries WHERE id = ?1 + 1 AND parent_id = ?1
               UNION ALL
               SELECT id, message_id FROM entries WHERE parent_id = ?1 AND parent_id IS NOT id - 1 AND id > ?1)
             SELECT children.id FROM children LEFT JOIN messages m ON m.id = message_id
              ORDER BY m.kind IS 2, children.id LIMIT 1",
            [entry],
        )
    }

    /// The user's last message on the branch.
    pub fn last_request(&self, branch: &RowRanges) -> Result<Option<MessageId>> {
        self.last_of(branch, "user")
    }

    /// The model's last message on the branch.
    pub fn last_answer(&self, branch: &RowRanges) -> Result<Option<MessageId>> {
        self.last_of(branch, "assistant")
    }

    fn last_of(&self, branch: &RowRanges, role: &'static str) -> Result<Option<MessageId>> {
        // Not bound, so that an index of requests can be used.
        let sql = format!(
            "SELECT m.id FROM entries e CROSS JOIN messages m ON m.id = e.message_id
              WHERE e.id BETWEEN ?1 AND ?2 AND e.kind = 1 AND m.role = '{role}' AND m.kind = 0
              ORDER BY e.id DESC LIMIT 1"
        );
        for rows in &branch.rows {
            let found = self.first(&sql, [rows.start(), rows.end()])?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }
}
