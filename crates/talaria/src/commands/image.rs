//! `talaria image`.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Serialize;
use talaria_image::{Picture, PictureFormat, Prepared, Refusal, Target, Watch, prepare};
use talaria_types::runtime::now;

use super::Surroundings;
use crate::arguments::PrepareArguments;
use crate::exit::{CommandError, Exit};
use crate::table::{Table, bytes};

/// What became of one file.
#[derive(Debug, Serialize)]
struct Report {
    input: PathBuf,
    input_bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<RefusalReport>,
    source: Option<SourceReport>,
    pictures: Vec<PictureReport>,
    notes: Vec<String>,
    encodes: u32,
    /// Of every run, in the order they were made.
    milliseconds: Vec<f64>,
}

#[derive(Debug, Serialize)]
struct RefusalReport {
    kind: &'static str,
    detail: String,
}

#[derive(Debug, Serialize)]
struct SourceReport {
    format: &'static str,
    width: u32,
    height: u32,
    frames: u32,
}

#[derive(Debug, Serialize)]
struct PictureReport {
    media_type: &'static str,
    bytes: usize,
    /// Characters of the whole `data:` URL, which the budget limits.
    url_length: usize,
    width: u32,
    height: u32,
    /// Left, top, width and height of the part of the original it shows.
    area: [u32; 4],
    is_original: bool,
    scale_note: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<PathBuf>,
}

/// Prepares files and prints what became of them; exit code 1 if one was refused.
pub(super) fn prepare_files(
    surroundings: &Surroundings,
    arguments: &PrepareArguments,
) -> Result<Exit, CommandError> {
    let _log = surroundings.quiet_log()?;
    if let Some(folder) = &arguments.output {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("make the folder {}", folder.display()))?;
    }
    let reports = arguments
        .files
        .iter()
        .map(|file| prepare_file(file, arguments))
        .collect::<Result<Vec<Report>, CommandError>>()?;
    surroundings
        .output
        .print(&reports, |reports| table(reports))?;
    let is_well = reports.iter().all(|report| report.refusal.is_none());
    Ok(if is_well { Exit::Ok } else { Exit::CheckFailed })
}

fn prepare_file(file: &Path, arguments: &PrepareArguments) -> Result<Report, CommandError> {
    let input = std::fs::read(file).map_err(|error| {
        CommandError::usage(format!("{} cannot be read: {error}", file.display()))
    })?;
    let target = arguments.target();
    let (mut outcome, mut milliseconds) = timed(&input, &target);
    for _ in 1..arguments.repeat.get() {
        let (again, took) = timed(&input, &target);
        outcome = again;
        milliseconds.extend(took);
    }
    let mut report = Report {
        input: file.to_owned(),
        input_bytes: input.len(),
        refusal: None,
        source: None,
        pictures: Vec::new(),
        notes: Vec::new(),
        encodes: 0,
        milliseconds,
    };
    match outcome {
        Ok(prepared) => report.fill(prepared, arguments.output.as_deref())?,
        Err(refusal) => {
            report.refusal = Some(RefusalReport {
                kind: refusal.kind.as_str(),
                detail: refusal.detail,
            });
        }
    }
    Ok(report)
}

fn timed(input: &[u8], target: &Target) -> (Result<Prepared, Refusal>, Vec<f64>) {
    let began = now();
    let outcome = prepare(input, target, &Watch::never());
    let took = began.elapsed().as_secs_f64() * 1_000.0;
    (outcome, vec![took])
}

impl Report {
    fn fill(&mut self, prepared: Prepared, folder: Option<&Path>) -> Result<(), CommandError> {
        let source = prepared.source;
        self.source = Some(SourceReport {
            format: source.format.as_str(),
            width: source.width,
            height: source.height,
            frames: source.frames,
        });
        self.notes = prepared.notes.into_iter().map(|note| note.text).collect();
        self.encodes = prepared.encodes;
        let is_one = prepared.pictures.len() == 1;
        for (number, picture) in (1..).zip(&prepared.pictures) {
            let number = (!is_one).then_some(number);
            let path = folder
                .map(|folder| write(folder, &self.input, number, picture))
                .transpose()?;
            self.pictures.push(PictureReport::of(picture, path));
        }
        Ok(())
    }

    /// The median run.
    fn typical(&self) -> f64 {
        let mut sorted = self.milliseconds.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or_default()
    }
}

impl PictureReport {
    fn of(picture: &Picture, path: Option<PathBuf>) -> Self {
        let area = picture.area;
        Self {
            media_type: picture.format.media_type(),
            bytes: picture.bytes.len(),
            url_length: picture.url_length(),
            width: picture.width,
            height: picture.height,
            area: [area.x, area.y, area.width, area.height],
            is_original: picture.is_original,
            scale_note: picture.scale_note.clone(),
            path,
        }
    }
}

/// Writes a picture beside the others, under the name of its input.
fn write(
    folder: &Path,
    input: &Path,
    number: Option<u32>,
    picture: &Picture,
) -> Result<PathBuf, CommandError> {
    let extension = match picture.format {
        PictureFormat::Png => "png",
        PictureFormat::Jpeg => "jpg",
        PictureFormat::WebP => "webp",
    };
    let mut name = input.file_name().unwrap_or_default().to_owned();
    if let Some(number) = number {
        name.push(format!(".{number}"));
    }
    name.push(format!(".{extension}"));
    let path = folder.join(name);
    std::fs::write(&path, &picture.bytes).with_context(|| format!("write {}", path.display()))?;
    Ok(path)
}

fn table(reports: &[Report]) -> String {
    let mut table = Table::new(&[
        "INPUT", "SOURCE", "CHOSEN", "SIZE", "BYTES", "URL", "ENCODES", "MS",
    ]);
    let mut notes = String::new();
    for report in reports {
        let input = report.input.display().to_string();
        let milliseconds = format!("{:.1}", report.typical());
        if let Some(refusal) = &report.refusal {
            table.row(&[
                input.clone(),
                bytes(u64::try_from(report.input_bytes).unwrap_or(u64::MAX)),
                format!("refused: {}", refusal.kind),
                String::new(),
                String::new(),
                String::new(),
                String::new(),
                milliseconds,
            ]);
            notes.push_str(&format!("{input}: {}\n", refusal.detail));
            continue;
        }
        for picture in &report.pictures {
            table.row(&[
                input.clone(),
                report.source.as_ref().map_or_else(String::new, |source| {
                    format!("{} {}×{}", source.format, source.width, source.height)
                }),
                if picture.is_original {
                    format!("{} (original)", picture.media_type)
                } else {
                    picture.media_type.to_owned()
                },
                format!("{}×{}", picture.width, picture.height),
                picture.bytes.to_string(),
                picture.url_length.to_string(),
                report.encodes.to_string(),
                milliseconds.clone(),
            ]);
        }
        for note in &report.notes {
            notes.push_str(&format!("{input}: {note}\n"));
        }
    }
    let gap = if notes.is_empty() { "" } else { "\n" };
    format!("{}{gap}{notes}", table.render())
}
