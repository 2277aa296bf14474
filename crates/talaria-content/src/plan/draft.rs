//! A result whose files are stored: its text is put together and bounded.

mod compose;
mod pictures;
mod vendor;

use serde_json::Value;
use talaria_types::{DeliveryId, NoticeCode};

use crate::attach::Attached;
use crate::delivery::{Artifact, BlockRecord, Delivery, HermesParts, Link, Notice};
use crate::describe::{Described, Describing};
use crate::masking::Masker;
use crate::notices::Notices;
use crate::render::hermes::{self, Body};
use crate::render::{Format, NO_OUTPUT};
use crate::sanitise::{field, json_line, model_text, strip_value};

use super::lines::{Audience, SettledFile};
use super::reference::{self, Root};
use super::spill::{Bounded, Spill};
use super::{FileOutcome, FileRequest, Plan, PlanRequest, ResultKind};

use compose::compose;
use vendor::vendor_meta;

pub(super) use compose::{Line, Origin, join_owned, length};

const NO_DETAILS: &str = "(the tool reported an error and said nothing about it)";
/// What Hermes answers for a failed result without a text.
const HERMES_NO_DETAILS: &str = "MCP tool returned an error";

/// A delivery whose text is not bounded yet.
#[derive(Debug)]
pub struct Draft {
    request: PlanRequest,
    text: Text,
    artifacts: Vec<Artifact>,
    /// The block of each artifact.
    origins: Vec<Option<usize>>,
    links: Vec<Link>,
    structured: Option<Value>,
    meta: Option<Value>,
    notices: Notices,
    blocks: Vec<BlockRecord>,
    is_error: bool,
    /// The answer in format `hermes`, where that is the format.
    hermes: Option<Body>,
    attached: Option<Attached>,
    describing: Describing,
}

/// The model text, with what stands in for it when it is too long.
#[derive(Debug)]
enum Text {
    Whole(String),
    TooLong(Box<Bounded>),
}

impl Draft {
    pub(super) fn new(plan: Plan, outcomes: Vec<FileOutcome>) -> Self {
        let mut notices = plan.notices;
        let mut artifacts = Vec::new();
        let mut origins = Vec::new();
        let mut outcomes = outcomes.into_iter();
        let files: Vec<SettledFile> = plan
            .files
            .into_iter()
            .map(|file| {
                let block = file.block;
                let settled = SettledFile::new(file, outcomes.next(), &mut artifacts);
                origins.resize(artifacts.len(), block);
                settled
            })
            .collect();
        let mut blocks = plan.blocks;
        for (block, code, detail) in files.iter().filter_map(|file| file.failure.as_ref()) {
            notices.add(
                NoticeCode::NotStored,
                *block,
                format!("{detail} ({})", code.as_str()),
            );
            compose::mark_unstored(&mut blocks, *block);
        }
        let is_error_text_only = plan.is_error
            && plan.request.kind == ResultKind::ToolCall
            && plan.request.format.tells_failures_in_words();
        let masker = &plan.request.masker;
        let structured = reference::apply(Root::Structured, plan.structured, &plan.patches, &files)
            .map(|mut value| {
                strip_value(&mut value);
                masker.mask_value(&mut value);
                value
            });
        let meta =
            reference::apply(Root::Meta, plan.meta, &plan.patches, &files).map(|mut value| {
                masker.mask_value(&mut value);
                value
            });
        let meta = vendor_meta(meta, &mut notices);
        let mut lines = compose(plan.parts, &files, plan.is_error, plan.request.format);
        // The text of a failed result is the tool's own words only (specification 1.14).
        if let Some(dropped) = meta.line
            && !is_error_text_only
        {
            lines.push(Line::own(dropped));
        }
        let draft = Assembly {
            request: plan.request,
            lines,
            artifacts,
            origins,
            links: plan.links,
            structured,
            meta: meta.kept,
            notices,
            blocks,
            is_error: plan.is_error,
        };
        if is_error_text_only {
            return draft.error_text();
        }
        let hermes = match draft.request.format {
            Format::Hermes => Some(match (plan.listing, plan.prompt) {
                (Some(listing), _) => Body::Value(listing),
                (None, Some(frame)) => Body::Value(hermes::prompt(
                    frame.description.as_deref(),
                    &frame.roles,
                    &draft.texts_by_block(frame.roles.len()),
                )),
                (None, None) => draft.hermes_result(plan.has_usable_text),
            }),
            Format::Talaria
            | Format::Text
            | Format::Anthropic
            | Format::OpenaiResponses
            | Format::OpenaiChat
            | Format::Gemini
            | Format::Mcp => None,
        };
        draft.finish(hermes)
    }

    /// The files that take what is over the model's budget. Call once.
    pub fn take_spills(&mut self) -> Vec<FileRequest> {
        match &mut self.text {
            Text::Whole(_) => Vec::new(),
            Text::TooLong(bounded) => bounded.take_request().into_iter().collect(),
        }
    }

    /// Bounds the text, naming the spill files, in the order of [`Self::take_spills`].
    #[must_use]
    pub fn settle(self, spills: Vec<FileOutcome>) -> Delivery {
        let Self {
            mut artifacts,
            mut structured,
            mut notices,
            mut blocks,
            mut hermes,
            ..
        } = self;
        let attached = self.attached.unwrap_or_default();
        let Described { words, report } =
            self.describing
                .settle(&artifacts, &self.origins, &mut notices);
        let mut text = match self.text {
            Text::Whole(text) => text,
            Text::TooLong(bounded) => {
                let Spill {
                    text,
                    artifact,
                    notice,
                    drops_structured,
                } = bounded.settle(spills.into_iter().next(), &mut blocks);
                notices.add(notice.0, None, notice.1);
                if drops_structured && structured.take().is_some() {
                    notices.add(
                        NoticeCode::StructuredTooLarge,
                        None,
                        "the structured content is too large to repeat here; it is in the file",
                    );
                }
                artifacts.extend(artifact);
                if hermes.is_some() {
                    hermes = Some(Body::text(&text));
                }
                text
            }
        };
        // Notes come last and whole: what a budget cuts never reaches them.
        for notes in [words, attached.notes()].into_iter().flatten() {
            text.push('\n');
            text.push_str(&notes);
            if attached.attachments.is_empty() {
                hermes = hermes.map(|body| body.with_notes(&notes));
            }
        }
        let picture_notes = (!attached.attachments.is_empty()).then(|| attached.header_and_notes());
        Delivery {
            id: DeliveryId::generate(),
            text,
            attachments: attached.attachments,
            artifacts,
            links: self.links,
            structured,
            meta: self.meta,
            is_error: self.is_error,
            notices: masked(notices, &self.request.masker),
            gate: self.request.gate,
            vision: report,
            server: self.request.server.map(String::from),
            tool: self.request.tool.map(|tool| field(&tool)),
            elapsed_ms: 0,
            hermes: HermesParts {
                body: hermes.as_ref().map(hermes::render),
                picture_notes,
            },
            blocks,
            is_untrusted: false,
        }
    }
}

/// The notices, which may name keys and addresses of the server.
fn masked(notices: Notices, masker: &Masker) -> Vec<Notice> {
    let mut notices = notices.into_list();
    for notice in &mut notices {
        masker.mask_text(&mut notice.message);
    }
    notices
}

/// A draft on its way.
struct Assembly {
    request: PlanRequest,
    lines: Vec<Line>,
    artifacts: Vec<Artifact>,
    origins: Vec<Option<usize>>,
    links: Vec<Link>,
    structured: Option<Value>,
    meta: Option<Value>,
    notices: Notices,
    blocks: Vec<BlockRecord>,
    is_error: bool,
}

impl Assembly {
    /// The answer of format `hermes` for a tool or a resource (specification 1.9).
    fn hermes_result(&self, has_usable_text: bool) -> Body {
        let text = compose::join(self.lines.iter().filter(|line| line.is_for_hermes()));
        hermes::result(
            text,
            has_usable_text,
            self.structured.clone(),
            self.meta.clone(),
        )
    }

    /// The texts of each message, for `prompts/get` in format `hermes`.
    fn texts_by_block(&self, count: usize) -> Vec<String> {
        let mut texts: Vec<Option<String>> = vec![None; count];
        for line in self.lines.iter().filter(|line| line.is_for_hermes()) {
            let Some(text) = line.block.and_then(|block| texts.get_mut(block)) else {
                continue;
            };
            match text {
                None => *text = Some(line.text.clone()),
                Some(text) => {
                    text.push('\n');
                    text.push_str(&line.text);
                }
            }
        }
        texts.into_iter().map(Option::unwrap_or_default).collect()
    }

    /// A failed result as one string (specification 1.14).
    fn error_text(mut self) -> Draft {
        let mut text = compose::join(self.lines.iter().filter(|line| line.is_for_model()));
        if text.trim().is_empty() {
            text = match &self.structured {
                Some(structured) => {
                    crate::redact::redact(&model_text(&json_line(structured))).into_owned()
                }
                None => HERMES_NO_DETAILS.to_owned(),
            };
        }
        let hermes = (self.request.format == Format::Hermes)
            .then(|| Body::Error(hermes::bounded_error(&text)));
        let budget = self.request.result_size_chars;
        let bounded = hermes::truncate(&text, budget.max(1));
        if bounded.len() != text.len() {
            self.notices.add(
                NoticeCode::TextTruncated,
                None,
                format!("the error text was cut to {budget} characters"),
            );
        }
        self.structured = None;
        self.meta = None;
        self.into_draft(Text::Whole(bounded.into_owned()), hermes)
    }

    fn finish(mut self, hermes: Option<Body>) -> Draft {
        self.lines.retain(Line::is_for_model);
        let structured_is_alone = self.lines.is_empty();
        if let Some(structured) = &self.structured {
            let json = json_line(structured);
            let text = if structured_is_alone {
                // A bare string may open like a line of ours.
                model_text(&json).into_owned()
            } else {
                format!("structuredContent: {json}")
            };
            self.lines.push(Line::data(text));
        }
        if let Some(meta) = &self.meta {
            self.lines
                .push(Line::data(format!("_meta: {}", json_line(meta))));
        }
        if self.lines.is_empty() {
            let line = if self.is_error { NO_DETAILS } else { NO_OUTPUT };
            self.notices.add(NoticeCode::NoOutput, None, line);
            self.lines.push(Line::own(line.to_owned()));
        }
        let budget = self.request.result_size_chars;
        let is_too_long = match &hermes {
            Some(body) => compose::is_longer(&hermes::render(body), budget),
            None => compose::are_longer(&self.lines, budget),
        };
        let text = if is_too_long {
            let is_json = structured_is_alone && self.structured.is_some() && self.lines.len() == 1;
            let lines = std::mem::take(&mut self.lines);
            Text::TooLong(Box::new(Bounded::new(lines, budget, is_json)))
        } else {
            Text::Whole(join_owned(std::mem::take(&mut self.lines)))
        };
        self.into_draft(text, hermes)
    }

    fn into_draft(self, text: Text, hermes: Option<Body>) -> Draft {
        Draft {
            request: self.request,
            text,
            artifacts: self.artifacts,
            origins: self.origins,
            links: self.links,
            structured: self.structured,
            meta: self.meta,
            notices: self.notices,
            blocks: self.blocks,
            is_error: self.is_error,
            hermes,
            attached: None,
            describing: Describing::default(),
        }
    }
}

impl Line {
    /// Whether the format `hermes` has this line.
    fn is_for_hermes(&self) -> bool {
        match self.audience {
            Audience::Everybody | Audience::OnlyHermes => true,
            Audience::NotHermes => false,
        }
    }

    /// Whether the model text has this line; it has no blank ones.
    fn is_for_model(&self) -> bool {
        match self.audience {
            Audience::Everybody | Audience::NotHermes => !self.text.trim().is_empty(),
            Audience::OnlyHermes => false,
        }
    }

    fn own(text: String) -> Self {
        Self {
            text,
            origin: Origin::Ours,
            block: None,
            audience: Audience::Everybody,
        }
    }

    fn data(text: String) -> Self {
        Self {
            text,
            origin: Origin::Server,
            block: None,
            audience: Audience::NotHermes,
        }
    }
}
