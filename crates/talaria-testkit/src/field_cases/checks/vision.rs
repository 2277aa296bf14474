//! Sentences about describing a picture: who was asked what, and whose answer it is.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::super::{Observed, Sightings};
use super::{Scene, Verdict, expect, quoted};
use crate::pictures::SeenPicture;

/// Shortest side that providers take.
const SHORTEST_SIDE: u32 = 28;
/// Where a tool may want the question.
const QUESTIONS: &[&str] = &["prompt", "question", "instruction", "query"];

pub(super) fn judge(scene: &Scene<'_>, sentence: &str) -> Verdict {
    if scene.case.kind == "vision_failover" {
        return texts(scene, sentence)
            .or_else(|| origin(scene, sentence))
            .or_else(|| times(scene, sentence))
            .or_else(|| requests(scene, sentence))
            .or_else(|| calls(scene, sentence));
    }
    helper(scene, sentence).or_else(|| arguments(scene, sentence))
}

fn text(observed: &Observed<'_>) -> String {
    let text = observed.delivery["text"].as_str();
    text.unwrap_or_default().to_owned()
}

/// The first observation of which something does not hold makes the verdict.
fn all<'a>(
    observed: &[Observed<'a>],
    holds: impl Fn(&Observed<'a>) -> Result<(), String>,
) -> Result<(), String> {
    observed.iter().enumerate().try_for_each(|(index, one)| {
        holds(one).map_err(|problem| format!("variant {index}: {problem}"))
    })
}

fn sightings<'a>(observed: &Observed<'a>) -> Result<&'a Sightings, String> {
    observed.seen.ok_or_else(|| "nobody was watched".to_owned())
}

/// The text of every variant, or of the ones a sentence names.
fn texts(scene: &Scene<'_>, sentence: &str) -> Verdict {
    let observed = scene.observed;
    let (among, sentence) = if let Some(rest) = sentence.strip_prefix("for the first two, ") {
        (observed.get(..2)?, rest)
    } else if let Some(rest) = sentence.strip_prefix("for the third, ") {
        (observed.get(2..3)?, rest)
    } else {
        (observed, sentence)
    };
    if let Some(rest) = sentence.strip_prefix("model text does not contain ") {
        let words = quoted(rest);
        return Some(all(among, |one| {
            let text = text(one);
            let found = words.iter().find(|word| text.contains(**word));
            expect(found.is_none() && !words.is_empty(), || {
                format!("{found:?} is in {text:?}")
            })
        }));
    }
    if let Some(rest) = sentence.strip_prefix("model text contains ") {
        let words = quoted(rest);
        let is_either = rest.contains("' or '");
        return Some(all(among, |one| {
            let text = text(one);
            let mut found = words.iter().map(|word| text.contains(*word));
            let holds = if is_either {
                found.any(|found| found)
            } else {
                found.all(|found| found) && !words.is_empty()
            };
            expect(holds, || format!("the text is {text:?}"))
        }));
    }
    if let Some(limit) = sentence.strip_prefix("model text stays under ") {
        let limit = limit.strip_suffix(" characters")?.replace(',', "");
        let limit: usize = limit.parse().ok()?;
        return Some(all(among, |one| {
            let count = text(one).chars().count();
            expect(count < limit, || format!("it has {count}"))
        }));
    }
    if sentence == "model text is not blank" {
        return Some(all(among, |one| {
            let text = text(one);
            expect(!text.trim().is_empty(), || format!("it is {text:?}"))
        }));
    }
    let either = sentence.strip_prefix("either model text contains ")?;
    let words = quoted(either);
    Some(all(among, |one| {
        let text = text(one);
        let told = words.iter().any(|word| text.contains(*word));
        let failed = text.contains("could not be described") && has_reason(one);
        expect(told || failed, || format!("the text is {text:?}"))
    }))
}

/// The descriptions of a delivery.
fn descriptions(observed: &Observed<'_>) -> Vec<Value> {
    let all = observed.delivery.pointer("/vision/descriptions");
    all.and_then(Value::as_array).cloned().unwrap_or_default()
}

fn has_reason(observed: &Observed<'_>) -> bool {
    descriptions(observed).iter().any(|one| {
        one["error"]
            .as_str()
            .is_some_and(|error| !error.trim().is_empty())
            || one["error"].is_object()
    })
}

/// Whose answer it is, and why it is not another's.
fn origin(scene: &Scene<'_>, sentence: &str) -> Verdict {
    if let Some(name) = sentence.strip_prefix("the result is marked as a success obtained from ") {
        return Some(all(scene.observed, |one| {
            let described = descriptions(one);
            let fits = |one: &Value| {
                one["via"].as_str().is_some_and(|via| via.contains(name))
                    && one["text"].is_string()
                    && one["error"].is_null()
            };
            let expected = one.described.max(1);
            let marked = described.iter().filter(|one| fits(one)).count();
            let is_error = &one.delivery["is_error"];
            expect(
                marked == expected && *is_error == Value::Bool(false),
                || format!("is_error {is_error}, vision {described:?}"),
            )
        }));
    }
    let name = sentence
        .strip_prefix("the log or trace says why ")?
        .strip_suffix(" failed")?;
    Some(all(scene.observed, |one| {
        let described = descriptions(one);
        let mut attempts = described
            .iter()
            .flat_map(|one| one["attempts"].as_array().cloned().unwrap_or_default());
        let said = attempts.any(|attempt| {
            let attempt = &attempt;
            attempt["via"]
                .as_str()
                .is_some_and(|via| via.contains(name))
                && attempt["code"].is_string()
                && attempt["detail"]
                    .as_str()
                    .is_some_and(|detail| !detail.is_empty())
        });
        expect(said, || format!("{described:?}"))
    }))
}

fn within(observed: &Observed<'_>, limit: Duration) -> Result<(), String> {
    let took = observed.took;
    expect(took < limit, || format!("it took {took:?}"))
}

fn times(scene: &Scene<'_>, sentence: &str) -> Verdict {
    let observed = scene.observed;
    match sentence {
        "no panic in any variant" | "no hang" => Some(all(observed, |one| {
            within(one, Duration::from_secs(30))?;
            expect(one.delivery.is_object(), || "no delivery".to_owned())
        })),
        "invalid values never cause a wait over 60 s or a panic" => {
            Some(all(observed, |one| within(one, Duration::from_secs(60))))
        }
        "failover happens within 5 s per image batch" => {
            // Six pictures are one batch: at most four of them are described.
            Some(all(observed, |one| within(one, Duration::from_secs(5))))
        }
        "in the first case primary is called again not earlier than 1.8 s and not later than 5 s \
         after the 429" => {
            let one = observed.first()?;
            Some(sightings(one).and_then(|seen| {
                let asked = seen.backends.get("primary").map(Vec::as_slice);
                let Some([first, second]) = asked else {
                    return Err(format!("{} requests", asked.map_or(0, <[_]>::len)));
                };
                let pause = second.at - first.at;
                let fits = Duration::from_millis(1_800)..=Duration::from_secs(5);
                expect(fits.contains(&pause), || format!("after {pause:?}"))
            }))
        }
        "the call to snap finishes within 5 s" => {
            Some(all(observed, |one| within(one, Duration::from_secs(5))))
        }
        "in the first case model text contains the tool's answer or a clear reason, within 10 s" => {
            let one = observed.first()?;
            let text = text(one);
            let told = text.contains("FALLBACK-OK")
                || text.contains("could not be described") && text.contains("not connected");
            Some(within(one, Duration::from_secs(10)).and_then(|()| expect(told, || text)))
        }
        "in the variant the text says the fallback server is not connected, within 10 s" => {
            let one = observed.get(1)?;
            let text = text(one);
            let told = text.contains("not connected");
            Some(within(one, Duration::from_secs(10)).and_then(|()| expect(told, || text)))
        }
        _ => None,
    }
}

/// How often and with what the endpoints were asked.
fn requests(scene: &Scene<'_>, sentence: &str) -> Verdict {
    let primary = |one: &Observed<'_>| -> Result<usize, String> {
        let asked = sightings(one)?.backends.get("primary");
        asked.map(Vec::len).ok_or_else(|| "no primary".to_owned())
    };
    let most = match sentence {
        "primary is called once" => Some((1, 1)),
        "primary is called at most 2 times" | "at most 2 requests to primary" => Some((1, 2)),
        _ => None,
    };
    if let Some((least, most)) = most {
        return Some(all(scene.observed, |one| {
            let count = primary(one)?;
            expect((least..=most).contains(&count), || format!("{count} times"))
        }));
    }
    match sentence {
        "at most 4 vision requests are open at the same time" => Some(all(scene.observed, |one| {
            let peak = sightings(one)?.peak;
            expect((1..=4).contains(&peak), || format!("{peak} were"))
        })),
        "the second request to primary carries fewer image bytes than the first" => {
            Some(all(scene.observed, |one| {
                let asked = sightings(one)?.backends.get("primary");
                let asked = asked.map(Vec::as_slice).unwrap_or_default();
                let sizes: Vec<usize> = asked
                    .iter()
                    .map(|one| one.pictures().iter().map(Vec::len).sum())
                    .collect();
                let shrinks = matches!(sizes.as_slice(), [first, second, ..] if second < first && *second > 0);
                expect(shrinks, || format!("they carry {sizes:?}"))
            }))
        }
        _ => None,
    }
}

/// With what the tools were called.
fn calls(scene: &Scene<'_>, sentence: &str) -> Verdict {
    let given = |one: &Observed<'_>, argument: &str| -> Result<Vec<String>, String> {
        let calls = &sightings(one)?.tools;
        let values = calls
            .iter()
            .filter_map(|(_, arguments)| arguments[argument].as_str());
        let values: Vec<String> = values.map(str::to_owned).collect();
        expect(!values.is_empty(), || format!("{argument} in {calls:?}"))?;
        Ok(values)
    };
    match sentence {
        "image_url starts with 'data:image/png;base64,' (or jpeg)" => {
            Some(all(scene.observed, |one| {
                let kinds = ["data:image/png;base64,", "data:image/jpeg;base64,"];
                let values = given(one, "image_url")?;
                let fits = |value: &String| kinds.iter().any(|kind| value.starts_with(kind));
                expect(values.iter().all(fits), || {
                    values
                        .iter()
                        .map(|value| value.chars().take(40).collect::<String>())
                        .collect()
                })
            }))
        }
        "image_source is an absolute path without leading '@' and the file exists during the call" =>
        {
            Some(all(scene.observed, |one| {
                // The tool itself opened the file, or its answer would not be there.
                let opened = text(one).contains("FALLBACK-OK");
                let values = given(one, "image_source")?;
                let absolute = values.iter().all(|value| Path::new(value).is_absolute());
                expect(opened && absolute, || format!("{values:?}"))
            }))
        }
        "understand_image is called exactly once" => Some(all(scene.observed, |one| {
            let count = sightings(one)?.tools.len();
            expect(count == 1, || format!("{count} times"))
        })),
        _ => None,
    }
}

/// Sentences of results whose pictures a helper describes.
fn helper(scene: &Scene<'_>, sentence: &str) -> Verdict {
    let text = scene.text;
    match sentence {
        "the path handed to the vision tool ends in .jpg or .jpeg" => {
            Some(sightings(scene.one).and_then(|seen| {
                let mut paths = seen
                    .tools
                    .iter()
                    .filter_map(|(_, arguments)| arguments["image_source"].as_str());
                let fits = paths.any(|path| path.ends_with(".jpg") || path.ends_with(".jpeg"));
                expect(fits, || format!("{:?}", seen.tools))
            }))
        }
        "model text mentions that the image could not be described and 401 or authentication" => {
            let lower = text.to_lowercase();
            let why = lower.contains("401") || lower.contains("authentication");
            Some(expect(
                lower.contains("could not be described") && why,
                || text.to_owned(),
            ))
        }
        "no vision helper call is made with a side shorter than 28 px" => {
            let pictures = scene.one.seen.map(Sightings::pictures).unwrap_or_default();
            let short = pictures.iter().find(|bytes| {
                SeenPicture::decode(bytes)
                    .map_or(true, |seen| seen.width.min(seen.height) < SHORTEST_SIDE)
            });
            let requests = scene.one.requests;
            Some(expect(short.is_none() && requests == 0, || {
                format!("short: {}, requests elsewhere: {requests}", short.is_some())
            }))
        }
        _ => None,
    }
}

/// Sentences about the arguments that tools of many shapes were given.
fn arguments(scene: &Scene<'_>, sentence: &str) -> Verdict {
    if scene.case.kind != "vision_tool_arguments" {
        return None;
    }
    let judge_each = |holds: &dyn Fn(&Value, &Value) -> Result<(), String>| {
        let input = &scene.case.input;
        let asked = input["cases"].as_array().map_or(0, Vec::len);
        let calls: Vec<&(Value, Value)> = scene
            .observed
            .iter()
            .filter_map(|one| one.seen)
            .flat_map(|seen| &seen.tools)
            .collect();
        expect(calls.len() == asked && asked > 0, || {
            format!("{} calls of {asked} tools", calls.len())
        })?;
        calls.iter().try_for_each(|(definition, arguments)| {
            holds(definition, arguments)
                .map_err(|problem| format!("{}: {problem}", definition["name"]))
        })
    };
    match sentence {
        "for every case all required properties are present and no undeclared property is sent" => {
            Some(judge_each(&|definition, arguments| {
                let schema = &definition["inputSchema"];
                let required = schema["required"].as_array().into_iter().flatten();
                let missing = required
                    .filter_map(Value::as_str)
                    .find(|name| arguments.get(*name).is_none_or(Value::is_null));
                expect(missing.is_none(), || format!("{missing:?} is missing"))?;
                let mut given = arguments.as_object().into_iter().flatten();
                let unknown = given.find(|(name, _)| schema["properties"].get(name).is_none());
                expect(unknown.is_none(), || format!("{unknown:?} is not declared"))
            }))
        }
        "the question text is in prompt / question / instruction / query" => {
            let question = scene.one.seen.map_or("", |seen| &seen.question);
            Some(judge_each(&|_, arguments| {
                let asked = QUESTIONS
                    .iter()
                    .filter_map(|name| arguments[name].as_str())
                    .any(|text| text.contains(question));
                expect(asked && !question.is_empty(), || arguments.to_string())
            }))
        }
        "image_base64 gets bare base64 without 'data:'" => {
            Some(judge_each(&|definition, arguments| {
                if definition
                    .pointer("/inputSchema/properties/image_base64")
                    .is_none()
                {
                    return Ok(());
                }
                let given = arguments["image_base64"].as_str().unwrap_or_default();
                expect(given.len() > 20 && !given.contains(':'), || {
                    given.chars().take(40).collect()
                })
            }))
        }
        _ => None,
    }
}
