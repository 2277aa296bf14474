//! A picture behind an address that a caller named. Links of a server are never fetched.

use std::sync::Arc;

use talaria_types::{CallContext, Failure, PayloadSink};

use super::{DeliveryService, PictureInput};

impl DeliveryService {
    /// Fetches the picture at an address, by the rules on which addresses are open (specification
    /// 6.1). Dropping the future leaves no file.
    ///
    /// # Errors
    /// `url_blocked`, `url_unreachable`, `not_an_image`, or it did not come in time.
    pub async fn open_url(&self, ctx: &CallContext, url: &str) -> Result<PictureInput, Failure> {
        let sink: Arc<dyn PayloadSink> = Arc::new(self.store.clone());
        let fetching = self.fetcher.fetch(url, ctx.deadline, &sink, &self.blocking);
        Ok(PictureInput::Fetched(Box::new(fetching.await?)))
    }
}
