//! A port and a thread of its own for a server that tests script.

use std::net::SocketAddr;
use std::thread::JoinHandle;

use anyhow::Context;
use talaria_types::runtime::spawn;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;

/// A listening port; dropping it ends it and every connection.
#[derive(Debug)]
pub(crate) struct Loopback {
    address: SocketAddr,
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl Loopback {
    /// Listens at an address; `serve` makes what serves one connection.
    ///
    /// # Errors
    /// The address is taken, or not one of this machine.
    pub(crate) fn start<Serving>(
        name: &'static str,
        address: SocketAddr,
        serve: impl Fn(TcpStream) -> Serving + Send + 'static,
    ) -> anyhow::Result<Self>
    where
        Serving: Future<Output = ()> + Send + 'static,
    {
        let stop = CancellationToken::new();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let listener = std::net::TcpListener::bind(address).context("bind")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let accept = accept(listener, name, serve, stop.clone());
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || runtime.block_on(accept))?;
        Ok(Self {
            address,
            stop,
            thread: Some(thread),
        })
    }

    /// Where it listens.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// Serves connections until told to stop; the runtime's end then drops them all.
async fn accept<Serving>(
    listener: std::net::TcpListener,
    name: &'static str,
    serve: impl Fn(TcpStream) -> Serving,
    stop: CancellationToken,
) where
    Serving: Future<Output = ()> + Send + 'static,
{
    let Ok(listener) = TcpListener::from_std(listener) else {
        return;
    };
    loop {
        let stream = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(_) => continue,
            },
        };
        // A broken connection is the script's or the client's doing; nobody waits for the task.
        drop(spawn(name, serve(stream)));
    }
}
