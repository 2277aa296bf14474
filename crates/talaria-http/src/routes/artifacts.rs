//! `/v1/artifacts`: the media store for agents on another machine.

use std::io::{Read, Seek, SeekFrom};
use std::time::{Duration, UNIX_EPOCH};

use actix_web::HttpResponse;
use actix_web::HttpResponseBuilder;
use actix_web::body::SizedStream;
use actix_web::http::header::{self, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::web::Bytes;
use futures_util::stream;
use schemars::JsonSchema;
use serde::Serialize;
use talaria_config::Scope;
use talaria_content::Artifact;
use talaria_media::{ArtifactRecord, OpenArtifact, StoreError};
use talaria_types::runtime::BlockingPool;
use talaria_types::{ArtifactId, Deadline, ErrorCode, Failure};

use crate::disposition;
use crate::exchange::Asked;
use crate::problem::Rejection;
use crate::query;
use crate::range::{self, Wanted};
use crate::routes::{json, parameter};

/// How much of a file is read at a time, and the size up to which it is sent in one piece.
const PIECE: u64 = 256 * 1024;
/// How long the disk may take for one operation, waiting for a worker included.
const DISK_TIMEOUT: Duration = Duration::from_secs(30);
/// What a file may do if a browser shows it after all: nothing.
const SANDBOX: &str = "default-src 'none'; sandbox; frame-ancestors 'none'";

/// Answer of `GET /v1/artifacts/{id}/meta`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ArtifactMeta {
    /// What the agent was told.
    #[serde(flatten)]
    artifact: Artifact,
    /// Milliseconds since 1970 when it was stored.
    created_ms: u64,
    /// Name of the token whose call made it.
    owner: Option<String>,
}

/// Sends a file or a part of it.
pub(super) async fn read(asked: &Asked<'_>) -> Result<HttpResponse, Rejection> {
    query::read(asked.request, &[])?;
    let id = permitted_id(asked).await?.0;
    let store = asked.state.store.clone();
    let blocking = &asked.state.blocking;
    let open = on_disk(blocking, move || store.read(&id)).await?;
    let artifact = &open.record.artifact;
    let size = artifact.bytes;
    let etag = format!("\"{}\"", artifact.sha256);
    let (start, length, status) = match range::wanted(asked.request.headers(), &etag, size) {
        Wanted::Whole => (0, size, StatusCode::OK),
        Wanted::Part { start, length } => (start, length, StatusCode::PARTIAL_CONTENT),
        Wanted::Outside => return Err(outside(size)),
        Wanted::NotModified => {
            let mut response = HttpResponse::NotModified();
            describe_file(&mut response, artifact, &etag);
            return Ok(response.finish());
        }
    };
    let mut response = HttpResponse::build(status);
    describe_file(&mut response, artifact, &etag);
    if status == StatusCode::PARTIAL_CONTENT {
        let last = start + length - 1;
        response.insert_header((
            header::CONTENT_RANGE,
            format!("bytes {start}-{last}/{size}"),
        ));
    }
    let reading = Reading {
        open,
        position: start,
        end: start + length,
    };
    if *asked.request.method() == Method::HEAD {
        // The length is told and the body left out, so nothing needs to be read.
        let nothing = stream::empty::<Result<Bytes, std::io::Error>>();
        return Ok(response.body(SizedStream::new(length, nothing)));
    }
    if length <= PIECE {
        let (_, piece) = reading.next_piece(blocking).await?;
        return Ok(response.body(piece));
    }
    Ok(response.body(SizedStream::new(length, pieces(reading, blocking.clone()))))
}

/// Tells what is known of a file.
pub(super) async fn describe(asked: &Asked<'_>) -> Result<HttpResponse, Rejection> {
    query::read(asked.request, &[])?;
    let (_, record) = permitted_id(asked).await?;
    let created = record
        .created
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    json(&ArtifactMeta {
        artifact: record.artifact,
        created_ms: u64::try_from(created.as_millis()).unwrap_or(u64::MAX),
        owner: record.owner.map(String::from),
    })
}

/// Removes a file.
pub(super) async fn delete(asked: &Asked<'_>) -> Result<HttpResponse, Rejection> {
    query::read(asked.request, &[])?;
    let (id, record) = find(asked).await?;
    if !asked.caller.has(Scope::Admin) {
        asked.caller.need_artifact(&record)?;
    }
    let store = asked.state.store.clone();
    on_disk(&asked.state.blocking, move || store.delete(&id)).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// The artifact of the path, if the caller may read it.
async fn permitted_id(asked: &Asked<'_>) -> Result<(ArtifactId, ArtifactRecord), Rejection> {
    let (id, record) = find(asked).await?;
    asked.caller.need_artifact(&record)?;
    Ok((id, record))
}

async fn find(asked: &Asked<'_>) -> Result<(ArtifactId, ArtifactRecord), Rejection> {
    let text = parameter(asked)?;
    let Some(id) = ArtifactId::parse(&text) else {
        return Err(Failure::new(ErrorCode::UnknownArtifact, "no artifact has that id").into());
    };
    let store = asked.state.store.clone();
    let wanted = id.clone();
    let record = on_disk(&asked.state.blocking, move || store.find(&wanted)).await?;
    Ok((id, record))
}

async fn on_disk<T, F>(blocking: &BlockingPool, job: F) -> Result<T, Failure>
where
    F: FnOnce() -> Result<T, StoreError> + Send + 'static,
    T: Send + 'static,
{
    let done = blocking.run(Deadline::after(DISK_TIMEOUT), job).await?;
    done.map_err(|error| Failure::new(error.code, error.detail.clone()).caused_by(error))
}

fn describe_file(response: &mut HttpResponseBuilder, artifact: &Artifact, etag: &str) {
    let media_type = HeaderValue::from_str(&artifact.media_type)
        .unwrap_or_else(|_| HeaderValue::from_static("application/octet-stream"));
    response.insert_header((header::CONTENT_TYPE, media_type));
    response.insert_header((header::ETAG, etag));
    response.insert_header((header::ACCEPT_RANGES, "bytes"));
    response.insert_header((
        header::CONTENT_DISPOSITION,
        disposition::attachment(&artifact.name),
    ));
    response.insert_header((header::CONTENT_SECURITY_POLICY, SANDBOX));
    response.insert_header(("cross-origin-resource-policy", "same-origin"));
    response.insert_header((header::CACHE_CONTROL, "private, no-cache"));
}

fn outside(size: u64) -> Rejection {
    let detail = format!("the range lies outside the file, which has {size} bytes");
    let rejection = Rejection::invalid(detail).with_status(StatusCode::RANGE_NOT_SATISFIABLE);
    match HeaderValue::from_str(&format!("bytes */{size}")) {
        Ok(range) => rejection.with_header(header::CONTENT_RANGE, range),
        Err(_) => rejection,
    }
}

/// A file that is being sent. Holds the artifact open, and so keeps it from being removed.
#[derive(Debug)]
struct Reading {
    open: OpenArtifact,
    position: u64,
    end: u64,
}

impl Reading {
    /// Reads the next piece off the loop.
    async fn next_piece(self, blocking: &BlockingPool) -> Result<(Self, Bytes), Failure> {
        blocking
            .run(Deadline::after(DISK_TIMEOUT), move || self.read_piece())
            .await?
    }

    fn read_piece(mut self) -> Result<(Self, Bytes), Failure> {
        let wanted = (self.end - self.position).min(PIECE);
        let mut piece = Vec::with_capacity(usize::try_from(wanted).unwrap_or_default());
        let read = self
            .open
            .file
            .seek(SeekFrom::Start(self.position))
            .and_then(|_| (&self.open.file).take(wanted).read_to_end(&mut piece))
            .map_err(|error| unreadable().caused_by(error))?;
        if read as u64 != wanted {
            return Err(unreadable());
        }
        self.position += wanted;
        Ok((self, Bytes::from(piece)))
    }
}

/// The rest of a file, piece by piece. A piece that cannot be read cuts the connection, which is
/// all that can be done once the head is sent.
fn pieces(
    reading: Reading,
    blocking: BlockingPool,
) -> impl stream::Stream<Item = Result<Bytes, Failure>> {
    stream::try_unfold(reading, move |reading| {
        let blocking = blocking.clone();
        async move {
            if reading.position >= reading.end {
                return Ok(None);
            }
            let (reading, piece) = reading.next_piece(&blocking).await?;
            Ok(Some((piece, reading)))
        }
    })
}

fn unreadable() -> Failure {
    Failure::new(
        ErrorCode::MediaUnavailable,
        "the file could not be read whole",
    )
}
