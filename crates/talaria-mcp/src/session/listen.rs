//! Change notifications from servers that send them only on request (2026-07-28).

use std::time::Duration;

use rmcp::model::{
    ClientRequest, ServerPeerInfo, SubscriptionFilter, SubscriptionsListenRequest,
    SubscriptionsListenRequestParams,
};
use rmcp::service::{Peer, PeerRequestOptions, RoleClient, ServiceError};
use talaria_types::runtime;

use super::shared::Ending;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(120);

/// Subscribes to changes of the tool list where the server tells them and the revision wants to be asked.
pub(super) fn begin(peer: &Peer<RoleClient>, server: &ServerPeerInfo, ending: &Ending) {
    if server.protocol_version.has_initialize() {
        return;
    }
    let offers = &server.capabilities;
    let mut filter = SubscriptionFilter::new();
    let tools = offers.tools.as_ref().and_then(|tools| tools.list_changed);
    filter.tools_list_changed = tools.filter(|changes| *changes);
    if filter != SubscriptionFilter::new() {
        let listening = listen(peer.clone(), filter);
        let stop = ending.stop.clone();
        drop(runtime::spawn("mcp_listen", async move {
            stop.run_until_cancelled(listening).await;
        }));
    }
}

/// Asks again whenever a subscription ends, ever more seldom; gives up where it is refused.
async fn listen(peer: Peer<RoleClient>, filter: SubscriptionFilter) {
    let mut pause = FIRST_PAUSE;
    loop {
        let params = SubscriptionsListenRequestParams::new(filter.clone());
        let request =
            ClientRequest::SubscriptionsListenRequest(SubscriptionsListenRequest::new(params));
        let began = runtime::now();
        let options = PeerRequestOptions::no_options();
        let Ok(handle) = peer.send_cancellable_request(request, options).await else {
            return;
        };
        if let Ok(Err(ServiceError::McpError(error))) = handle.rx.await {
            tracing::debug!(%error, "the server takes no subscription");
            return;
        }
        if runtime::now().duration_since(began) > MAX_PAUSE {
            pause = FIRST_PAUSE;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(MAX_PAUSE);
    }
}
