//! Proves that nothing is left out: in any project, each block covers every visible message before the kept
//! tail exactly once, and is within its size limit.
//!
//! The assertions read the store's edges and the session by Pi's rules, never a counter of the product.
//! `PROPTEST_CASES` runs more cases.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use serde_json::json;

use super::support::{Compact, ScriptedModel, Session, TestStore, compacted, kept};
use super::tree::{Tree, id_of};
use super::world::{Asked, Event, Knobs, Mood, World, events, knobs, marks};
use lcm_compaction::llm::{Failure, Reply};
use lcm_compaction::{Compaction, Outcome};
use lcm_model::dag::{Forest, Piece, Sources, visible};
use lcm_model::error::Result;
use lcm_model::ids::{ConversationId, Handle, Hash, MessageId, SummaryId};
use lcm_model::policy;
use lcm_model::tokens;
use lcm_model::{Message, State};
use lcm_store::{Filter, TimeOrder, View};
use lcm_testing::cases;

/// A leaf of at most this many tokens is its own summary, and so is a group of summaries (`SCRAPS`).
const LITTLE: usize = 150;
const SCRAPS: usize = 60;
/// Such a summary may be longer by this many tokens, for its heading.
const HEADING: usize = 8;

/// A summary with everything below it.
#[derive(Clone, Debug)]
struct Below {
    id: SummaryId,
    hash: Hash,
    is_leaf: bool,
    degraded: bool,
    /// Tokens of the text and of its source.
    tokens: (usize, usize),
    messages: Vec<MessageId>,
}

/// `root` and all its sources, itself last.
fn below(view: &View<'_>, root: SummaryId) -> Result<Vec<Below>> {
    let summary = view.summaries().summary(root)?;
    let sources = view.summaries().sources(root)?;
    let (mut all, mut messages, mut from) = (Vec::new(), Vec::new(), 0);
    match &sources {
        Sources::Messages(ids) => {
            for id in ids {
                from += Message::parse(&view.messages().message(*id)?.json).tokens();
                messages.push(*id);
            }
        }
        Sources::Summaries(ids) => {
            for id in ids {
                all.extend(below(view, *id)?);
                let child = all.last().unwrap();
                from += child.tokens.0;
                messages.extend(&child.messages);
            }
        }
    }
    all.push(Below {
        id: root,
        hash: summary.hash,
        is_leaf: matches!(sources, Sources::Messages(_)),
        degraded: summary.state == State::Degraded,
        tokens: (tokens::estimate(&summary.text), from),
        messages,
    });
    Ok(all)
}

/// Whether `kept` begins the tail of a lean context.
fn is_tail(tree: &Tree<'_>, leaf: &str, kept: &str) -> bool {
    let seen = tree.seen(leaf);
    let messages: Vec<Message> = seen.iter().map(|(_, json)| Message::parse(json)).collect();
    let at = seen.iter().position(|(id, _)| id == kept);
    at.is_some_and(|at| messages[at..].iter().map(Message::pi_tokens).sum::<usize>() >= policy::TAIL)
}

/// The summaries that a block names, in order. Of a row it names the first, the last and the count; the
/// others come from `frontier`.
fn named(block: &str, frontier: &[String]) -> Vec<Handle> {
    let (_, ids) = block.rsplit_once("\n### Summary IDs for Drill-Down\n").unwrap();
    let short: Vec<String> = frontier.iter().map(|hash| format!("s-{}", &hash[..10])).collect();
    let place = |name: &str| short.iter().position(|short| short == name).unwrap();
    let mut named = Vec::new();
    for line in ids.lines().filter_map(|line| line.strip_prefix("- s-")) {
        let mut words = line.split(' ');
        let first = place(&format!("s-{}", words.next().unwrap()));
        let row = match (words.next(), words.next(), words.next()) {
            (Some("…"), Some(last), Some(count)) => {
                let row = &short[first..=place(last)];
                assert_eq!(
                    count.strip_prefix('(').and_then(|count| count.parse().ok()),
                    Some(row.len()),
                    "{line}"
                );
                row
            }
            _ => &short[first..=first],
        };
        named.extend(row.iter().map(|name| Handle::parse(name).unwrap()));
    }
    named
}

/// The summaries that are valid before an entry, by the product's rules, with their messages from the edges.
#[derive(Debug)]
struct Holding {
    seen: Vec<(String, MessageId)>,
    all: Vec<Below>,
    frontier: Vec<Hash>,
    /// Messages that the frontier covers.
    covered: BTreeSet<MessageId>,
}

/// `until` excludes newer summaries.
fn holding(
    view: &View<'_>,
    conversation: ConversationId,
    leaf: &str,
    kept: &str,
    until: Option<SummaryId>,
) -> Result<Holding> {
    let branch = view.messages().branch(conversation, leaf)?;
    let end = branch.iter().position(|entry| entry.entry_id == kept).unwrap_or(branch.len());
    let seen: Vec<(String, MessageId)> = (visible(&branch).into_iter())
        .filter(|message| message.index < end)
        .map(|message| (message.entry_id, message.seen.id))
        .collect();
    let ids: Vec<MessageId> = seen.iter().map(|(_, id)| *id).collect();
    let nodes = view
        .summaries()
        .nodes_on(&ids)?
        .into_iter()
        .filter(|node| until.is_none_or(|until| node.id <= until));
    let forest = Forest::new(&ids, nodes);
    let mut all = Vec::new();
    for id in forest.holding() {
        all.push(below(view, id)?.pop().unwrap());
    }
    let of = |id: SummaryId| all.iter().find(|below| below.id == id).unwrap();
    let (mut frontier, mut covered) = (Vec::new(), BTreeSet::new());
    for piece in forest.frontier() {
        if let Piece::Summary(id, _) = piece {
            frontier.push(of(id).hash);
            covered.extend(&of(id).messages);
        }
    }
    Ok(Holding { seen, all, frontier, covered })
}

impl World {
    async fn holding(&self, conversation: ConversationId, leaf: &str, kept: &str) -> Holding {
        self.held(conversation, leaf, kept, None).await
    }

    async fn held(
        &self,
        conversation: ConversationId,
        leaf: &str,
        kept: &str,
        until: Option<SummaryId>,
    ) -> Holding {
        let (leaf, kept) = (leaf.to_owned(), kept.to_owned());
        self.store.store.read(move |view| holding(view, conversation, &leaf, &kept, until)).await.unwrap()
    }

    async fn newest(&self) -> SummaryId {
        let mut newest = SummaryId(0);
        let read = move |view: &View<'_>| {
            view.summaries().summaries_in_turn(
                TimeOrder::NewestFirst,
                None,
                &Filter::default(),
                |summary| {
                    newest = summary.id;
                    Ok(false)
                },
            )?;
            Ok(newest)
        };
        self.store.store.read(read).await.unwrap()
    }

    /// Compacts, and asserts everything that must hold for any compaction.
    async fn compact(&mut self, asked: &Asked) -> Option<(Compaction, bool)> {
        let newest = self.newest().await;
        let model = asked.mood.model();
        let (compaction, failed) = match asked.run(&self.store, &model).await {
            Outcome::Compacted(made) => (made.compaction, made.degraded),
            Outcome::Declined => {
                self.assert_too_little(asked).await;
                return None;
            }
            outcome => panic!("it was {outcome:?}"),
        };
        let kept = kept(&compaction).to_owned();
        let before = self.held(asked.conversation, &asked.leaf, &kept, Some(newest)).await;
        let entries = &self.sittings[asked.sitting].entries;
        let tree = Tree::of(entries);
        let path: Vec<&str> = tree.path(&asked.leaf).into_iter().map(id_of).collect();
        let place = |id: &str| path.iter().position(|at| *at == id);
        let end = place(&kept).expect("the kept entry is on the branch");
        assert!(
            Some(end) <= place(&asked.kept) || (self.knobs.is_lean() && is_tail(&tree, &asked.leaf, &kept)),
            "less is kept than Pi asked for"
        );
        let first = entries.iter().find(|entry| id_of(entry) == kept).unwrap();
        assert_ne!(first["message"]["role"], "toolResult", "the kept part begins with a result");

        let seen = tree.seen(&asked.leaf).into_iter();
        let expected: Vec<String> =
            seen.filter(|(id, _)| place(id) < Some(end)).map(|(_, message)| message).collect();
        let block = compaction.summary.clone();
        let handles = named(&block, &compaction.details.frontier);
        let read = move |view: &View<'_>| {
            let (mut roots, mut all, mut texts) = (Vec::new(), Vec::new(), Vec::new());
            for handle in handles {
                let ids = view.summaries().summaries_like(&handle, None)?;
                assert_eq!(ids.len(), 1, "{handle:?}");
                let below = below(view, ids[0])?;
                for message in &below.last().unwrap().messages {
                    texts.push(view.messages().message(*message)?.json);
                }
                roots.push(below.last().unwrap().hash);
                all.extend(below);
            }
            Ok((roots, all, texts))
        };
        let (roots, all, covered) = self.store.store.read(read).await.unwrap();

        // Each visible message before the kept tail, in order, in one span of the block, and nothing else.
        assert_eq!(covered, expected, "{block}");
        let frontier: Vec<String> = roots.iter().map(ToString::to_string).collect();
        assert_eq!(frontier, compaction.details.frontier);
        let covers = format!("covers {}, none missing", lcm_model::text::count(expected.len(), "message"));
        assert!(block.contains(&covers), "{block}");

        let size = tokens::estimate(&block);
        assert!(size <= self.knobs.budget(), "{size} > {}\n{block}", self.knobs.budget());
        let replaced: usize = expected.iter().map(|json| Message::parse(json).tokens()).sum();
        assert!(replaced <= 1_000 || size < replaced, "{size} tokens for {replaced}\n{block}");

        // Nothing that the model does not see here: other branches, hidden or private messages.
        let allowed = marks(&expected.concat());
        let shown = marks(&block);
        assert!(shown.is_subset(&allowed), "{:?} in\n{block}", shown.difference(&allowed));
        for prompt in model.prompts() {
            let shown = marks(&prompt);
            assert!(shown.is_subset(&allowed), "{:?} in\n{prompt}", shown.difference(&allowed));
        }
        let rested_on_extracts = before.all.iter().any(|below| below.degraded);
        for summary in &all {
            let (tokens, from) = summary.tokens;
            let little = if summary.is_leaf { LITTLE } else { SCRAPS };
            let most = if from <= little { from + HEADING } else { from - 1 };
            assert!(tokens <= most, "{tokens} tokens for {from}: {summary:?}");
            // No message is paid for twice, unless a frontier with extracts had to be replaced.
            if summary.id > newest && summary.is_leaf && !rested_on_extracts {
                let again = summary.messages.iter().any(|message| before.covered.contains(message));
                assert!(!again, "{summary:?} was covered by {:?}", before.frontier);
            }
            assert!(
                !summary.degraded || asked.mood.may_fail(),
                "not healed by {:?}: {summary:?}",
                asked.mood
            );
        }
        // An extract below a model's summary is not shown, and waits for a model that answers.
        let shows_extracts = all.iter().any(|below| below.degraded && roots.contains(&below.hash));
        assert_eq!(failed, shows_extracts, "the report is wrong");
        Some((compaction, failed))
    }

    /// Asserts that there is too little to compact. If Pi's cut would leave nothing visible, the user's last
    /// request stays.
    async fn assert_too_little(&self, asked: &Asked) {
        let before = self.holding(asked.conversation, &asked.leaf, &asked.kept).await;
        let seen = Tree::of(&self.sittings[asked.sitting].entries).visible(&asked.leaf);
        let request = seen.iter().rposition(|message| message.contains(r#""role":"user""#));
        let ours = match request {
            Some(request) if seen.len() == before.seen.len() => request,
            _ => before.seen.len(),
        };
        assert!(ours == 0 || (ours < self.knobs.few() && before.all.is_empty()), "{ours}: {before:?}");
    }

    /// A compaction without new messages makes no call and gives the same bytes, also in a fork. Only the
    /// user's instructions are answered again each time.
    async fn compact_again(&mut self, asked: &Asked, first: &Compaction) {
        if asked.request.custom_instructions.is_some() {
            return;
        }
        let model = Mood::Down.model();
        let again = compacted(asked.run(&self.store, &model).await);
        assert_eq!(model.prompts(), [""; 0]);
        assert_eq!(again.summary, first.summary);
        assert_eq!(again.details, first.details);
        assert_eq!(again.first_kept_entry_id, first.first_kept_entry_id);

        let path = Tree::of(&self.sittings[asked.sitting].entries).path(&asked.leaf);
        let fork = self.fork_of(path.into_iter().cloned().collect());
        let conversation = self.store_sitting(fork).await;
        let theirs = compacted(asked.run_in(&self.store, conversation, &model).await);
        assert_eq!(model.prompts(), [""; 0]);
        assert_eq!(theirs.details.frontier, first.details.frontier);
        // A fork has other messages on its other branches.
        let counts = |block: &str| block.split_once(" stored | ").unwrap().1.to_owned();
        assert_eq!(counts(&theirs.summary), counts(&first.summary));
        self.sittings.pop();
    }

    /// Edits a message that was summarized long ago: that invalidates the summaries that cover it, and no
    /// others.
    async fn edit_late(&mut self, asked: &Asked, compaction: &Compaction, dice: usize) {
        let kept = kept(compaction);
        self.store_sitting(asked.sitting).await;
        let leaf = self.sitting().leaf().to_owned();
        let before = self.holding(asked.conversation, &leaf, kept).await;
        let (target, message) = before.seen[dice % before.seen.len()].clone();
        let replacement =
            if dice.is_multiple_of(2) { json!(null) } else { json!({"content": "mk0x put briefly"}) };
        let edit = self.append("context_edit", json!({"targetId": target, "replacement": replacement}));
        let conversation = self.store_sitting(asked.sitting).await;
        let after = self.holding(conversation, &edit, kept).await;
        if before.seen == after.seen {
            return; // Not editable, such as a branch summary.
        }
        let hashes = |all: &[Below], with: bool| -> BTreeSet<Hash> {
            let all = all.iter().filter(|below| with || !below.messages.contains(&message));
            all.map(|below| below.hash).collect()
        };
        let (had, unharmed, has) =
            (hashes(&before.all, true), hashes(&before.all, false), hashes(&after.all, true));
        assert!(unharmed.is_subset(&has), "{:?} ended too", unharmed.difference(&has));
        let ended: BTreeSet<_> = had.difference(&unharmed).collect();
        assert!(ended.iter().all(|hash| !has.contains(*hash)), "still valid");
        let again = self.asking(edit, kept.to_owned(), 0, Mood::Helpful).await;
        self.compact(&again).await;
    }

    /// The frontier of every branch of every session.
    async fn frontiers(&self, conversations: &[ConversationId]) -> Vec<Vec<Hash>> {
        let mut all = Vec::new();
        for (sitting, conversation) in self.sittings.iter().zip(conversations) {
            let parents: BTreeSet<&str> =
                sitting.entries.iter().filter_map(|entry| entry["parentId"].as_str()).collect();
            let is_leaf = |id: &&str| !parents.contains(*id);
            for leaf in sitting.entries.iter().map(id_of).filter(is_leaf) {
                all.push(self.holding(*conversation, leaf, "").await.frontier);
            }
        }
        all
    }

    async fn store_all(&mut self) -> Vec<ConversationId> {
        let mut conversations = Vec::new();
        for at in 0..self.sittings.len() {
            conversations.push(self.store_sitting(at).await);
        }
        conversations
    }
}

/// Checks besides those of every compaction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Also {
    Nothing,
    Again,
    LateEdits,
}

/// Plays the events. Returns the project and the compactions.
async fn play(events: &[Event], knobs: Knobs, also: Also) -> (World, Vec<Asked>) {
    let mut world = World::new(knobs);
    let mut done = Vec::new();
    for (at, event) in events.iter().enumerate() {
        let Some(asked) = world.happen(event).await else { continue };
        let Some((compaction, failed)) = world.compact(&asked).await else { continue };
        // A model that did not shorten its source is asked again.
        if also == Also::Again && !failed && matches!(asked.mood, Mood::Helpful | Mood::Terse) {
            world.compact_again(&asked, &compaction).await;
        }
        world.note(&compaction);
        if also == Also::LateEdits {
            world.edit_late(&asked, &compaction, at * 31).await;
        }
        done.push(asked);
    }
    (world, done)
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

#[tokio::test]
async fn healing_an_extract_leaves_no_gap() {
    let session = Session::new().chat(6, 30).user("tail");
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let compact = |kept: &str, chunk: usize| {
        Compact::new(&store, conversation, session.leaf(), kept).with(|settings, _| {
            settings.leaf_chunk_tokens = chunk;
            settings.condensation_threshold = 2;
        })
    };
    let (helpful, asked) = (ScriptedModel::helpful(), AtomicUsize::new(0));
    // The model fails for the second of three leaves, so that one is an extract, and the first two are
    // condensed from it.
    let fails = ScriptedModel::new(move |request| {
        if request.prompt.contains("question 4 ") {
            return Err(Failure::useless("the answer was cut off"));
        }
        let text = format!("Stretch {}", asked.fetch_add(1, Ordering::Relaxed));
        Ok(Reply { text, model: None, usage: None })
    });
    let first = compacted(compact("e13", 300).run(&fails).await);
    assert_eq!(first.details.frontier.len(), 2, "{}", first.summary);
    // With an earlier tail neither fits: smaller leaves are made, and the first of them is condensed.
    let shorter = compacted(compact("e7", 70).run(&helpful).await);
    assert!(shorter.summary.contains("DAG depth 1"), "{}", shorter.summary);
    // After healing, the longest summary replaces the extract; it ends within the healed one.
    let healed = compacted(compact("e13", 300).run(&helpful).await);
    assert!(healed.summary.contains("covers 12 messages, none missing, 0 degraded"), "{}", healed.summary);
}

#[tokio::test]
async fn a_fork_counts_the_summaries_of_what_it_copies_later() {
    let store = TestStore::new();
    let session = Session::new().chat(30, 60);
    let conversation = store.ingest("one", &session).await;
    let compact = Compact::new(&store, conversation, session.leaf(), session.leaf())
        .with(|settings, _| settings.leaf_chunk_tokens = 300);
    compacted(compact.run(&ScriptedModel::helpful()).await);
    let mut part = Session::new();
    part.entries = session.entries[..4].to_vec();
    let fork = store.ingest("two", &part).await;
    let summaries =
        async || store.store.read(move |view| view.summaries().totals(fork)).await.unwrap().summaries;
    let before = summaries().await;
    part.entries = session.entries[4..].to_vec();
    store.ingest("two", &part).await;
    assert!(summaries().await > before);
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn every_block_covers_each_visible_message_once_within_its_limit(
        events in events(90), knobs in knobs(),
    ) {
        block_on(play(&events, knobs, Also::Nothing));
    }

    #[test]
    fn without_new_messages_a_compaction_makes_no_call_and_the_same_bytes_even_in_a_fork(
        events in events(70), knobs in knobs(),
    ) {
        block_on(play(&events, knobs, Also::Again));
    }

    #[test]
    fn a_late_edit_invalidates_only_the_summaries_that_cover_it(events in events(70), knobs in knobs()) {
        block_on(play(&events, knobs, Also::LateEdits));
    }

    #[test]
    fn a_model_that_answers_again_replaces_extracts(events in events(70), knobs in knobs()) {
        block_on(async {
            let (mut world, done) = play(&events, knobs, Also::Nothing).await;
            for asked in done {
                // Every compaction asserts that nothing degraded is left if no call can fail.
                let helpful = Asked { mood: Mood::Helpful, ..asked };
                if let Some((_, failed)) = world.compact(&helpful).await {
                    assert!(!failed);
                }
            }
        });
    }

    #[test]
    fn a_store_rebuilt_from_the_sessions_has_the_same_frontiers(events in events(70), knobs in knobs()) {
        block_on(async {
            let (mut world, _) = play(&events, knobs.clone(), Also::Nothing).await;
            let conversations = world.store_all().await;
            let frontiers = world.frontiers(&conversations).await;
            let mut rebuilt = World::new(knobs);
            rebuilt.sittings.clear();
            for sitting in &world.sittings {
                rebuilt.fork_of(sitting.entries.clone());
            }
            let conversations = rebuilt.store_all().await;
            let again = rebuilt.frontiers(&conversations).await;
            assert_eq!(again, frontiers);
        });
    }
}
