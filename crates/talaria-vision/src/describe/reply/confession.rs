//! Answers that say that there is none: the model saw no picture, or refuses.
//!
//! Only a short answer that says nothing else is one. Whoever confesses and goes on to describe
//! something has described it, and what is written in a picture may read like a confession too.

use std::sync::LazyLock;

use talaria_config::Pattern;

use crate::describe::verdict::FaultKind;

/// Longest text that may be nothing but a confession.
const CONFESSION_CHARS: usize = 400;
/// How MiniMax's server tells a failure as its answer; others stand in front of it.
const TOLD_AS_ANSWER: &str = "failed to perform vlm analysis";
/// Words with which even one clause goes on to say something.
const GOES_ON: [&str; 5] = ["however the", "shows", "depicts", "appears", "i can see"];
/// Where a clause ends.
const CLAUSE_ENDS: [char; 15] = [
    '.', ',', ';', ':', '!', '?', '\n', '—', '–', '。', '，', '；', '：', '！', '？',
];

type Words = LazyLock<Option<Pattern>>;

/// A clause of a model that was shown no picture, or cannot see; all of the clause.
static BLIND: Words = LazyLock::new(|| {
    Pattern::new(concat!(
        r"^(?:but |and |however |unfortunately |sorry |(?:i'm|i am) (?:very )?sorry (?:but )?|error |it (?:seems|looks|appears) (?:like |that )*)?",
        r"(?:(?:i (?:can't|cannot|can not|am unable to|am not able to|don't have the ability to|do not have the ability to|don't have the capability to)|i'm (?:unable|not able) to)",
        r"(?: (?:directly|actually|currently))* (?:see|view|process|analy[sz]e|access|interpret|display|open|look at)(?: (?:or|and) [a-z]+)?",
        r"(?: any| the| an| a| your| this| that| attached| uploaded| provided)* (?:images?|pictures?|photos?|screenshots?|visual content|visuals)",
        r"(?: (?:directly|(?:because|as|since) (?:i|you)\b.*|you\b.*|attached.*|that (?:you|was|were|is|are)\b.*|from (?:you|links?|urls?)\b.*))?$",
        r"|i (?:don't|do not) see (?:any|an|the) (?:images?|pictures?|attachments?)",
        r"(?: (?:attached.*|in your\b.*|in our\b.*|in this conversation|provided.*|here))?$",
        r"|(?:there (?:is|was) )?no (?:image|picture) (?:(?:was|has been|is) )?(?:provided|attached|uploaded|included|shared|sent)(?: (?:to|in|with|by) (?:your|the|this|you)\b.*|here|yet)?$",
        r"|you (?:haven't|have not|didn't|did not) (?:provided?|attach(?:ed)?|upload(?:ed)?|shared?|include[d]?) (?:an|any|the) (?:image|picture)(?: (?:yet|to|in|with|for)\b.*)?$",
        r"|(?:this |the |the current )?model (?:does not|doesn't|cannot|can't) (?:support|accept|take|process|see) (?:images?|pictures?|vision|image inputs?)(?: inputs?)?$",
        r"|(?:please|could you please) (?:provide|upload|attach|share) (?:the|an|your) (?:image|picture)\b.*)",
    ))
    .ok()
});
/// The same in Chinese, which several backends answer in whatever they are asked in.
static BLIND_ZH: Words = LazyLock::new(|| {
    Pattern::new(
        r"^(?:(?:非常|很)?抱歉|对不起)?(?:但是?)?(?:我|作为.{1,20}我)?(?:目前|暂时|现在)?(?:无法|不能|没有办法|没办法|看不到)(?:直接)?(?:查看|看到|看见|识别|处理|分析|访问|打开)?(?:您|你)?(?:提供的|上传的|发送的)?(?:任何|这张|该)?(?:图片|图像|照片|截图)(?:内容)?$",
    )
    .ok()
});
/// A clause of a refusal.
static REFUSED: Words = LazyLock::new(|| {
    Pattern::new(
        r"^(?:but |and |unfortunately |sorry |(?:i'm|i am) (?:very )?sorry (?:but )?)?(?:i (?:can't|cannot|can not|won't|am unable to|am not able to)|i'm (?:unable|not able) to) (?:assist|comply|fulfil|fulfill|continue|engage|help (?:with|you))\b",
    )
    .ok()
});
/// A clause that says nothing of a picture: apologies, offers, who speaks, and why not.
static COURTESY: Words = LazyLock::new(|| {
    Pattern::new(concat!(
        r"^(?:but |and |so |then |otherwise |however |instead )?(?:",
        r"(?:(?:i'm|i am) )?(?:very |so )?sorry(?: (?:about|for) .*| but)?$|i apologi[sz]e\b|(?:my )?apologies\b",
        r"|(?:unfortunately|however|but|error|thanks?|thank you|hello|hi|as requested|at (?:the|this) (?:moment|time)|right now|currently)$",
        r"|as an? [a-z0-9 -]{2,40}$|(?:i'm|i am) (?:an?|only|just|designed|limited)\b",
        r"|please\b|(?:could|can|would|will) you\b|you (?:can|could|may|might)\b|if you\b|once you\b|when you\b|let me know\b|feel free\b|try\b",
        r"|(?:i'd|i would|i'll|i will) (?:be )?(?:happy|glad|able|do my best|help|try)\b|how (?:can|may) i\b|what would you\b",
        r"|i (?:can )?only (?:process|read|work|handle|help|understand|have access)\b|i can help\b",
        r"|i (?:don't|do not) have (?:the )?(?:ability|capability|access|vision)\b",
        r"|(?:it|this|that|your|the) ?(?:request|image|content)? (?:goes against|violates|may violate|is against)\b",
        r"|(?:(?:非常|很)?抱歉|对不起)$|(?:您|你)可以|请|如果|作为|我(?:可以|会|只能|是)",
        ")",
    ))
    .ok()
});

fn is(words: &Words, clause: &str) -> bool {
    words
        .as_ref()
        .is_some_and(|pattern| pattern.is_match(clause))
}

/// What a short answer confesses, where that is all it says.
pub(super) fn confession(text: &str) -> Option<FaultKind> {
    if text.chars().count() > CONFESSION_CHARS {
        return None;
    }
    let plain = text.trim().to_lowercase().replace('\u{2019}', "'");
    if plain.starts_with(TOLD_AS_ANSWER) {
        return Some(FaultKind::ErrorInside);
    }
    let mut found = None;
    for clause in plain.split(CLAUSE_ENDS) {
        let clause = clause.trim_matches(|c: char| !c.is_alphanumeric());
        let rest = clause.strip_prefix("it appears").unwrap_or(clause);
        if clause.is_empty() {
            continue;
        }
        if GOES_ON.iter().any(|words| rest.contains(words)) {
            return None;
        }
        if is(&BLIND, clause) || is(&BLIND_ZH, clause) {
            found = Some(FaultKind::CannotSee);
        } else if is(&REFUSED, clause) {
            found = found.or(Some(FaultKind::RefusalOnly));
        } else if !is(&COURTESY, clause) {
            return None;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_ones() {
        for words in [&BLIND, &BLIND_ZH, &REFUSED, &COURTESY] {
            assert!(words.is_some());
        }
    }

    #[test]
    fn confessions_are_not_descriptions() {
        for text in [
            "I'm sorry, but I can't see images.",
            "I’m unable to view images directly. Could you describe it?",
            "Sorry, I cannot process the image you provided.",
            "As a text-based AI, I don't have the ability to see images.",
            "I don't see any image attached to your message.",
            "No image was provided. Please share one.",
            "It seems no image was attached. Please upload the image.",
            "It appears that you haven't uploaded an image yet.",
            "It looks like there is no picture attached to your message.",
            "Error: model does not support image input",
            "The model does not support images.",
            "Please upload the image you would like me to describe.",
            "Unfortunately, I am not able to view or analyze images.",
            "I can't see images because I am a text model. If you describe it, I'd be happy to help!",
            "**I don't see any image.**\n\nPlease attach it again.",
            "抱歉，我无法查看图片。请描述一下。",
            "很抱歉，我目前无法直接看到您上传的图片内容。",
        ] {
            assert_eq!(confession(text), Some(FaultKind::CannotSee), "{text}");
        }
        let told = "Failed to perform VLM analysis: API Error: 1033";
        assert_eq!(confession(told), Some(FaultKind::ErrorInside));
        for text in [
            "I'm sorry, but I can't assist with that.",
            "I cannot help with this request.",
            "Sorry, I'm unable to comply.",
            "I'm sorry, I can't help with that. It violates my guidelines.",
        ] {
            assert_eq!(confession(text), Some(FaultKind::RefusalOnly), "{text}");
        }
    }

    #[test]
    fn descriptions_are_not_confessions() {
        for text in [
            "I cannot see a dog in the picture.",
            "It appears that a cat sits on a mat.",
            "It seems to be a red square.",
            "Error: file not found, says a dialog.",
            "The model does not support images, says the dialog of a program.",
            "No image carries a caption in this gallery.",
            "I don't see any images in this table.",
            "I can't see any image in the second column, only text.",
            "I can't help noticing the red square.",
            "A dialog says: I'm sorry, but I can't see images.",
            "Sorry, I can't identify the person; however, the image shows a man in a hat.",
            "I'm unable to view the image in full, but it shows a cat.",
            "A red, green, blue and white square.",
            "Sorry seems to be the title of the book.",
            "我看不到图片中有狗。",
            "图片中显示一只猫。",
        ] {
            assert_eq!(confession(text), None, "{text}");
        }
        let long = format!("I cannot help with that. {}", "A street. ".repeat(60));
        assert_eq!(confession(&long), None);
    }

    #[test]
    fn whoever_goes_on_has_described_something() {
        for text in [
            "I don't see any images, just a table.",
            "I don't see any images. The page is a table of three rows.",
            "No image was attached: the mail holds two lines of text.",
            "I can't see images because the page is blank.",
            "I can't help with naming people, but this is a man in a hat.",
            "No image is included. It reads: total 42.",
            "我看不到图片，只有一个表格。",
        ] {
            assert_eq!(confession(text), None, "{text}");
        }
    }
}
