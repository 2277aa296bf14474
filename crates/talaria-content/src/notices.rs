//! What a delivery says about parts that were dropped, refused or changed, in bounded number.

use std::collections::BTreeMap;

use talaria_types::NoticeCode;

use crate::delivery::Notice;

/// How many notices are listed one by one; a result with a million odd blocks gets counts.
const MAX_LISTED: usize = 200;

/// Notices in the order in which they came up.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    listed: Vec<Notice>,
    unlisted: BTreeMap<NoticeCode, usize>,
}

impl Notices {
    pub(crate) fn add(
        &mut self,
        code: NoticeCode,
        block: Option<usize>,
        message: impl Into<String>,
    ) {
        if self.listed.len() < MAX_LISTED {
            self.listed.push(Notice {
                code,
                message: message.into(),
                block,
            });
        } else {
            *self.unlisted.entry(code).or_default() += 1;
        }
    }

    /// The list, closed with one line per code for those that are not listed.
    pub(crate) fn into_list(self) -> Vec<Notice> {
        let mut list = self.listed;
        list.extend(self.unlisted.into_iter().map(|(code, count)| Notice {
            code,
            message: format!("{count} more of the kind {} are not listed", code.as_str()),
            block: None,
        }));
        list
    }
}
