//! Synonyms in talk about software: a search for a bug that was repaired finds where it was fixed.

use super::words::are_kin;

/// Each line is a group of synonyms.
const GROUPS: &str = "\
add append insert include
remove delete drop erase
fix repair correct resolve patch solve
change modify alter update edit adjust
create make build generate produce
error failure fault problem issue bug defect exception
check verify test validate examine inspect confirm
show display print render
start begin launch
run execute invoke call
stop halt terminate kill abort quit
finish complete conclude
find search locate
directory folder dir
function method routine func fn
argument parameter option arg param
config configuration settings preferences
repo repository
docs documentation
big large huge
small tiny little
wrong incorrect invalid
explain describe
use utilize employ
user customer client
code source
output result
rename relabel
move relocate
copy duplicate clone
choose select pick decide
need require
allow permit enable
ignore skip omit
merge combine join
split separate divide
improve enhance optimize
refactor restructure rewrite
crash panic
database db
environment env
authentication auth login
picture image photo
job task
step stage phase
answer reply response
save write store persist
load read open
send post submit
get fetch obtain retrieve receive
password secret credential
revert undo restore rollback refresh
install setup
deploy publish release ship
convert transform translate
hang freeze stuck
missing absent
old previous former
identical equal same
package library dependency
command instruction
maximum max
minimum min
quick fast rapid
";

/// The synonyms of `word` in any of its forms.
pub(super) fn synonyms(word: &str) -> Vec<&'static str> {
    let groups = GROUPS.lines().map(|line| line.split(' '));
    let of_word = groups.filter(|group| group.clone().any(|one| are_kin(one, word)));
    of_word.flatten().filter(|one| !are_kin(one, word)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_word_has_its_synonyms() {
        assert_eq!(synonyms("repaired"), ["fix", "correct", "resolve", "patch", "solve"]);
        assert_eq!(synonyms("directories"), ["folder", "dir"]);
        assert!(synonyms("zeppelin").is_empty());
    }

    #[test]
    fn a_group_has_several_distinct_words() {
        for group in GROUPS.lines() {
            let words: Vec<&str> = group.split(' ').collect();
            assert!(words.len() > 1, "{group}");
            let is_twice = |(n, word): (usize, &&str)| words[..n].iter().any(|other| are_kin(word, other));
            assert!(!words.iter().enumerate().any(is_twice), "{group}");
        }
    }
}
