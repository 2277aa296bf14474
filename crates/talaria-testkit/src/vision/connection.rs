//! One connection of an endpoint: requests in, replies out as far as their script lets them.

use std::time::Duration;

use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;

use super::asked::Asked;
use super::reply::{End, Framing, Place, Reply};
use super::{Counted, State};
use crate::server::{read_request, watch_for_end};

/// Whether the connection serves another request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    Next,
    Closed,
    /// Open, but nothing comes any more.
    Silent,
}

/// Serves requests one after the other until the connection ends.
pub(super) async fn serve(stream: TcpStream, state: &State) -> anyhow::Result<()> {
    stream.set_nodelay(true)?;
    let (read, mut write) = stream.into_split();
    let mut reader = BufReader::new(read);
    while let Some(request) = read_request(&mut reader).await? {
        // Whoever closed one connection before opening this one is seen to do it in that order.
        for _ in 0..4 {
            tokio::task::yield_now().await;
        }
        let open = Counted::new(&state.requests);
        let reply = state.turn(&request.target);
        state.asked.lock().push(Asked {
            at: talaria_types::runtime::now(),
            method: request.method,
            target: request.target,
            headers: request.headers,
            body: request.body,
        });
        let replied = tokio::select! {
            replied = send(&reply, &mut write) => replied,
            () = watch_for_end(&mut reader) => {
                *state.departures.lock() += 1;
                return Ok(());
            }
        };
        match replied {
            Ok(After::Next) => drop(open),
            Ok(After::Closed) => return Ok(()),
            Ok(After::Silent) => {
                watch_for_end(&mut reader).await;
                *state.departures.lock() += 1;
                return Ok(());
            }
            Err(error) => {
                // Writing fails only when the client has closed its side.
                *state.departures.lock() += 1;
                return Err(error);
            }
        }
    }
    Ok(())
}

async fn send(reply: &Reply, write: &mut OwnedWriteHalf) -> anyhow::Result<After> {
    if !reply.pause.is_zero() {
        tokio::time::sleep(reply.pause).await;
    }
    if let Some(gate) = &reply.gate {
        gate.passed().await;
    }
    let head = reply.head();
    let (place, end) = match reply.end {
        Some((place, end)) => (Some(place), Some(end)),
        None => (None, None),
    };
    match place {
        Some(Place::Start) => {}
        Some(Place::Head) => {
            let half = head.get(..head.len() / 2).unwrap_or_default();
            put(write, half, reply.drip).await?;
        }
        Some(Place::Body(limit)) => {
            put(write, &head, reply.drip).await?;
            body(reply, write, limit).await?;
        }
        None => {
            put(write, &head, reply.drip).await?;
            body(reply, write, usize::MAX).await?;
            if reply.framing == Framing::Chunked {
                put(write, b"0\r\n\r\n", reply.drip).await?;
            }
        }
    }
    finish(reply, end, write).await
}

/// Sends the body, at most so many bytes of it.
async fn body(reply: &Reply, write: &mut OwnedWriteHalf, limit: usize) -> anyhow::Result<()> {
    let mut left = limit;
    for mut piece in reply.body.pieces() {
        piece.truncate(left);
        left -= piece.len();
        if piece.is_empty() {
            break;
        }
        match reply.framing {
            Framing::Chunked => {
                let size = format!("{:x}\r\n", piece.len());
                piece.splice(0..0, size.into_bytes());
                piece.extend_from_slice(b"\r\n");
            }
            Framing::BrokenChunks => {
                piece.splice(0..0, b"many\r\n".iter().copied());
            }
            Framing::Length | Framing::Told(_) | Framing::Connection => {}
        }
        put(write, &piece, reply.drip).await?;
    }
    Ok(())
}

async fn put(
    write: &mut OwnedWriteHalf,
    bytes: &[u8],
    drip: Option<Duration>,
) -> anyhow::Result<()> {
    let Some(pause) = drip else {
        return Ok(write.write_all(bytes).await?);
    };
    for byte in bytes {
        write.write_all(&[*byte]).await?;
        tokio::time::sleep(pause).await;
    }
    Ok(())
}

async fn finish(
    reply: &Reply,
    end: Option<End>,
    write: &mut OwnedWriteHalf,
) -> anyhow::Result<After> {
    let is_over = matches!(reply.framing, Framing::Connection | Framing::BrokenChunks);
    Ok(match end {
        Some(End::Stall) => After::Silent,
        Some(End::Reset) => {
            write.as_ref().set_zero_linger()?;
            After::Closed
        }
        Some(End::HalfClose) => {
            write.shutdown().await?;
            After::Silent
        }
        Some(End::Close) => After::Closed,
        None if is_over => After::Closed,
        None => After::Next,
    })
}
