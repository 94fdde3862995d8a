//! Where Pi would cut if it compacted now. What stands before that may be summarised ahead of time; what is cut otherwise in the
//! end was summarised in vain, no more.

use crate::dag::{Visible, can_begin_at};
use crate::error::Result;

/// The place of the first message that Pi would keep raw, so that the last `keep` tokens stay, by Pi's own measure, which `size`
/// tells. None where everything stays.
///
/// # Errors
/// What `size` says.
pub(super) fn first_kept(
    visible: &[Visible],
    keep: usize,
    mut size: impl FnMut(&Visible) -> Result<usize>,
) -> Result<Option<usize>> {
    let can_begin = |at: &usize| can_begin_at(visible, *at);
    let mut kept = 0;
    for at in (0..visible.len()).rev() {
        kept += size(&visible[at])?;
        if kept >= keep {
            let cut = (at..visible.len()).find(can_begin).or_else(|| (0..at).rev().find(can_begin));
            return Ok(cut);
        }
    }
    Ok(None)
}
