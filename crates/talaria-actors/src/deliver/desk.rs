//! What a worker of the blocking pool does for one delivery: read staged texts, store files.

use std::fs::File;
use std::io::Read;

use talaria_content::{
    Attaching, Delivery, Draft, FileOutcome, FileRequest, Plan, PlanRequest, TextToRead, plan,
};
use talaria_media::MediaStore;
use talaria_types::{RawResult, TokenName};

/// Where a worker stores the files of one delivery.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) store: MediaStore,
    pub(super) owner: Option<TokenName>,
}

/// How far a delivery is once its files are stored.
#[derive(Debug)]
pub(super) enum Stage {
    /// There are pictures to prepare, which is no work for the blocking pool.
    Pictures(Box<Draft>, Attaching),
    /// There are pictures to describe, which takes even longer.
    Words(Box<Draft>),
    /// It is complete.
    Done(Box<Delivery>),
}

impl Desk {
    /// Reads a result, stores its files, and ends the delivery where no picture holds it up.
    pub(super) fn whole(&self, raw: RawResult, request: PlanRequest, describes: bool) -> Stage {
        let mut plan = plan(raw, request);
        let texts = plan.texts_to_read().iter().map(read_text).collect();
        plan.put_texts(texts);
        let files = plan.take_files();
        self.save_files(plan, files, describes)
    }

    /// Stores the files of a plan, and ends the delivery where no picture holds it up.
    pub(super) fn save_files(&self, plan: Plan, files: Vec<FileRequest>, describes: bool) -> Stage {
        let mut draft = plan.finish(self.store_all(files));
        let attaching = draft.attaching();
        if !attaching.is_empty() {
            return Stage::Pictures(Box::new(draft), attaching);
        }
        if describes && !draft.describing().is_empty() {
            return Stage::Words(Box::new(draft));
        }
        Stage::Done(Box::new(self.attach(draft, attaching)))
    }

    /// Attaches pictures and bounds the text.
    pub(super) fn attach(&self, mut draft: Draft, attaching: Attaching) -> Delivery {
        draft.attach(attaching);
        let spills = draft.take_spills();
        self.save_spills(draft, spills)
    }

    /// Bounds the text.
    pub(super) fn save_spills(&self, draft: Draft, spills: Vec<FileRequest>) -> Delivery {
        draft.settle(self.store_all(spills))
    }

    fn store_all(&self, files: Vec<FileRequest>) -> Vec<FileOutcome> {
        files.into_iter().map(|file| self.store_one(file)).collect()
    }

    pub(super) fn store_one(&self, file: FileRequest) -> FileOutcome {
        match self.store.save(file, self.owner.as_ref()) {
            Ok(artifact) => FileOutcome::Stored(artifact),
            Err(error) => FileOutcome::Failed {
                code: error.code,
                detail: error.detail,
            },
        }
    }
}

/// A staged text, if it is still as long as it was.
fn read_text(text: &TextToRead) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(usize::try_from(text.bytes).ok()?);
    let file = File::open(&text.path).ok()?;
    // One byte more shows that the file has grown.
    file.take(text.bytes.saturating_add(1))
        .read_to_end(&mut bytes)
        .ok()?;
    (u64::try_from(bytes.len()).ok()? == text.bytes).then_some(bytes)
}
