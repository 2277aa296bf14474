//! Request heads: just enough HTTP/1.1 for the clients of a test server.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};

/// Longest request body read.
const MAX_BODY: usize = 256 * 1024 * 1024;

/// Where records keep the target of a request, among its headers.
const TARGET: &str = ":target";

/// One request.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

/// Reads the next request; `None` when the client closed the connection.
pub(crate) async fn read(
    reader: &mut BufReader<impl AsyncRead + Unpin>,
) -> anyhow::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line).await? == 0 {
        return Ok(None);
    }
    let mut words = line.split(' ').map(str::to_owned);
    let method = words.next().context("a method")?;
    let target = words.next().context("a target")?;
    let mut headers = BTreeMap::new();
    loop {
        line.clear();
        if reader.read_line(&mut line).await? == 0 {
            bail!("the head ends early");
        }
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    // No header has such a name.
    headers.insert(TARGET.to_owned(), target.clone());
    let body = match headers.get("content-length") {
        Some(length) => exact(reader, length.parse()?).await?,
        None if headers.contains_key("transfer-encoding") => chunked(reader).await?,
        None => Vec::new(),
    };
    Ok(Some(Request {
        method,
        target,
        headers,
        body,
    }))
}

async fn exact(reader: &mut (impl AsyncRead + Unpin), length: usize) -> anyhow::Result<Vec<u8>> {
    if length > MAX_BODY {
        bail!("a body of {length} bytes");
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).await?;
    Ok(body)
}

async fn chunked(reader: &mut BufReader<impl AsyncRead + Unpin>) -> anyhow::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).await?;
        let size = usize::from_str_radix(line.trim(), 16).context("a chunk size")?;
        let mut piece = exact(reader, size + 2).await?;
        piece.truncate(size);
        body.append(&mut piece);
        if size == 0 {
            return Ok(body);
        }
    }
}
