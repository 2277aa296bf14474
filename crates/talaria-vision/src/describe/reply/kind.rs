//! From status, typed codes and, last, words to the kind of a fault.

use super::complaint::{Complaint, Numbers};
use super::visible::one_line;
use crate::describe::verdict::FaultKind;

/// Typed codes, small letters and digits only, and what they mean.
const TYPED: &[(&[&str], FaultKind)] = &[
    (
        &[
            "insufficientquota",
            "billinghardlimitreached",
            "billingnotactive",
            "billingerror",
            "insufficientbalance",
            "insufficientcredits",
            "insufficientfunds",
            "paymentrequired",
            "quotaexceeded",
            "usagelimitreached",
            "arrearage",
        ],
        FaultKind::Quota,
    ),
    (
        &[
            "ratelimitexceeded",
            "ratelimiterror",
            "toomanyrequests",
            "throttling",
            "throttlingratequota",
            "resourceexhausted",
        ],
        FaultKind::RateLimited,
    ),
    (
        &[
            "invalidapikey",
            "incorrectapikey",
            "apikeyinvalid",
            "apikeyexpired",
            "authenticationerror",
            "invalidauthentication",
            "invalidauthenticationerror",
            "unauthenticated",
            "unauthorized",
            "tokenexpired",
            "permissionerror",
            "permissiondenied",
            "accessdenied",
            "forbidden",
            "accountdeactivated",
        ],
        FaultKind::Auth,
    ),
    (
        &[
            "modelnotfound",
            "modelnotexist",
            "modelnotexists",
            "modeldoesnotexist",
            "modelnotavailable",
            "unknownmodel",
            "invalidmodel",
            "nosuchmodel",
            "deploymentnotfound",
        ],
        FaultKind::UnknownModel,
    ),
    (
        &[
            "imagenotsupported",
            "imageinputnotsupported",
            "unsupportedimageinput",
            "unsupportedmodality",
            "visionnotsupported",
        ],
        FaultKind::CannotSee,
    ),
    (
        &[
            "requesttoolarge",
            "requestentitytoolarge",
            "payloadtoolarge",
            "contenttoolarge",
            "filetoolarge",
            "imagetoolarge",
            "contextlengthexceeded",
            "stringabovemaxlength",
        ],
        FaultKind::TooLarge,
    ),
    (
        &[
            "contentpolicyviolation",
            "contentfilter",
            "contentfiltered",
            "responsibleaipolicyviolation",
            "datainspectionfailed",
            "moderationblocked",
        ],
        FaultKind::RefusalOnly,
    ),
    (
        &[
            "timeout",
            "requesttimeout",
            "gatewaytimeout",
            "deadlineexceeded",
        ],
        FaultKind::Timeout,
    ),
];

/// Typed codes of a backend's own failure. They count only where no status says more.
const TYPED_SERVER: [&str; 10] = [
    "servererror",
    "internalservererror",
    "internalerror",
    "internal",
    "apierror",
    "overloaded",
    "overloadederror",
    "engineoverloaded",
    "unavailable",
    "serviceunavailable",
];

/// `MiniMax`' numbers in `base_resp`.
const MINIMAX: &[(&[i64], FaultKind)] = &[
    (&[1000, 1013, 1024, 1033], FaultKind::ServerError),
    (&[1001], FaultKind::Timeout),
    (&[1002, 1041, 2045], FaultKind::RateLimited),
    (&[1004, 2049], FaultKind::Auth),
    (&[1008, 1028, 1030, 2056, 2061], FaultKind::Quota),
    (&[1026, 1027], FaultKind::RefusalOnly),
    (&[1039], FaultKind::TooLarge),
    (&[1042, 2013], FaultKind::BadRequest),
];

/// z.ai's numbers, which stand in `error.code`.
const ZAI: &[(&[i64], FaultKind)] = &[
    (
        &[1000, 1001, 1002, 1003, 1004, 1110, 1111, 1112],
        FaultKind::Auth,
    ),
    (&[1113, 1308, 1309, 1310], FaultKind::Quota),
    (&[1211, 1220, 1221, 1222], FaultKind::UnknownModel),
    (&[1210, 1212, 1213, 1214, 1215], FaultKind::BadRequest),
    (&[1261], FaultKind::TooLarge),
    (&[1301], FaultKind::RefusalOnly),
    (
        &[1302, 1303, 1304, 1305, 1312, 1313],
        FaultKind::RateLimited,
    ),
    (&[1230, 1231, 1234], FaultKind::ServerError),
];

/// Words about money.
const QUOTA: [&str; 8] = [
    "insufficient balance",
    "insufficient credit",
    "insufficient funds",
    "insufficient quota",
    "credit balance is too low",
    "payment required",
    "exceeded your current quota",
    "out of credits",
];
/// Words about keys.
const AUTH: [&str; 9] = [
    "api key not valid",
    "invalid api key",
    "incorrect api key",
    "invalid x-api-key",
    "missing api key",
    "no api key",
    "api key is invalid",
    "authentication failed",
    "not authenticated",
];
/// Words about models that do not see.
const BLIND: [&str; 22] = [
    "not support image",
    "n't support image",
    "not support vision",
    "n't support vision",
    "not support multimodal",
    "support image input",
    "image input is not supported",
    "image inputs are not",
    "images are not supported",
    "image_url is only supported",
    "unknown variant `image_url`",
    "unsupported content type: image",
    "invalid content type. image_url",
    "unrecognized request argument supplied: image",
    "not accept image",
    "not a multimodal model",
    "is not multimodal",
    "is not a vision model",
    "picture support",
    "mmproj",
    "data required for image input",
    "only supports text",
];
/// Words about size.
const SIZE: [&str; 9] = [
    "too large",
    "too big",
    "exceeds",
    "exceed max",
    "size limit",
    "maximum size",
    "mb maximum",
    "larger than",
    "context length",
];
/// Words about a model that is not there; `model` stands beside them.
const GONE: [&str; 6] = [
    "not found",
    "not exist",
    "no such",
    "unknown model",
    "not a valid model",
    "invalid model",
];
/// Words about what may not be talked of.
const FORBIDDEN: [&str; 4] = [
    "content policy",
    "content_policy",
    "safety system",
    "content management policy",
];

/// The kind of an error that a body tells.
pub(super) fn of(status: u16, complaint: &Complaint) -> FaultKind {
    let is_good = (200..300).contains(&status);
    if let Some(kind) = complaint.tokens.iter().find_map(|token| typed(token)) {
        return kind;
    }
    let number = complaint.number;
    if complaint.numbers == Numbers::MiniMax {
        let known = number.and_then(|number| listed(MINIMAX, number));
        return known.unwrap_or(FaultKind::ErrorInside);
    }
    if complaint.numbers == Numbers::Zai
        && let Some(kind) = number.and_then(|number| listed(ZAI, number))
        && fits(status, kind)
    {
        return kind;
    }
    let inner = number.and_then(|number| u16::try_from(number).ok());
    let inner = inner.filter(|number| (400..600).contains(number));
    let counts = if is_good { inner } else { Some(status) };
    let words = one_line(&complaint.message).to_ascii_lowercase();
    match (counts, by_words(counts, &words)) {
        (_, Some(kind)) => kind,
        (Some(status), None) => by_status(status),
        (None, None) if complaint.tokens.iter().any(|token| is_servers(token)) => {
            FaultKind::ServerError
        }
        (None, None) => FaultKind::ErrorInside,
    }
}

/// Whether a number may say what a status means: a failure of the backend stays one, and a limit
/// stays one, of requests or of money.
const fn fits(status: u16, kind: FaultKind) -> bool {
    match status {
        500.. => false,
        429 => matches!(kind, FaultKind::Quota | FaultKind::RateLimited),
        _ => true,
    }
}

/// The kind of an error of which the body tells nothing typed.
pub(super) fn of_status(status: u16, words: &str, is_page: bool) -> FaultKind {
    if is_page && matches!(status, 404 | 410) {
        // Somebody answers there, but no API.
        return FaultKind::Misconfigured;
    }
    if is_page {
        return by_status(status);
    }
    by_words(Some(status), &words.to_ascii_lowercase()).unwrap_or_else(|| by_status(status))
}

fn typed(token: &str) -> Option<FaultKind> {
    let folded = fold(token);
    let mut rows = TYPED.iter();
    rows.find(|(codes, _)| codes.contains(&folded.as_str()))
        .map(|(_, kind)| *kind)
}

fn is_servers(token: &str) -> bool {
    TYPED_SERVER.contains(&fold(token).as_str())
}

fn fold(token: &str) -> String {
    token
        .bytes()
        .take(64)
        .filter(u8::is_ascii_alphanumeric)
        .map(|byte| char::from(byte.to_ascii_lowercase()))
        .collect()
}

fn listed(table: &[(&[i64], FaultKind)], number: i64) -> Option<FaultKind> {
    let mut rows = table.iter();
    rows.find(|(numbers, _)| numbers.contains(&number))
        .map(|(_, kind)| *kind)
}

/// Words count where the status leaves open what was wrong.
fn by_words(status: Option<u16>, words: &str) -> Option<FaultKind> {
    let says = |hints: &[&str]| hints.iter().any(|hint| words.contains(hint));
    let is_vague = matches!(status, None | Some(400 | 404 | 406 | 410 | 415 | 422));
    if (is_vague || matches!(status, Some(403 | 429))) && says(&QUOTA) {
        return Some(FaultKind::Quota);
    }
    if is_vague && says(&AUTH) {
        return Some(FaultKind::Auth);
    }
    if (is_vague || matches!(status, Some(500 | 501))) && says(&BLIND) {
        return Some(FaultKind::CannotSee);
    }
    if (is_vague || status == Some(403)) && says(&FORBIDDEN) {
        return Some(FaultKind::RefusalOnly);
    }
    if is_vague && says(&SIZE) {
        return Some(FaultKind::TooLarge);
    }
    if is_vague && words.contains("model") && says(&GONE) {
        return Some(FaultKind::UnknownModel);
    }
    None
}

const fn by_status(status: u16) -> FaultKind {
    match status {
        401 | 403 => FaultKind::Auth,
        402 => FaultKind::Quota,
        404 | 410 => FaultKind::UnknownModel,
        405 | 407 => FaultKind::Misconfigured,
        408 => FaultKind::Timeout,
        413 => FaultKind::TooLarge,
        421 | 451 => FaultKind::RefusalOnly,
        425 | 429 => FaultKind::RateLimited,
        400..500 => FaultKind::BadRequest,
        500.. => FaultKind::ServerError,
        // Redirects are not followed: a key goes where the operator sent it and nowhere else.
        _ => FaultKind::Misconfigured,
    }
}
