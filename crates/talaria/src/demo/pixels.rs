//! Pixels: for a model that sees, none for one that does not, a region, and text again.

use serde_json::{Value, json};
use talaria_content::{Artifact, Attachment, Delivery, Format};
use talaria_image::{DEFAULT_BUDGET, DEFAULT_MAX_SIDE};
use talaria_types::Route;

use super::sight::Sight;
use super::{Demo, public, words};
use crate::client::CallRequest;
use crate::demo_server::{assets, desktop};
use crate::exit::CommandError;

/// The part of the screen that is asked for by itself.
const REGION: [u32; 4] = [120, 120, 1_320, 920];

impl Demo<'_> {
    /// Every step about pixels.
    pub(super) async fn pixels(&mut self) {
        self.small_picture().await;
        self.large_picture().await;
        self.blind_model().await;
    }

    /// A picture that fits leaves with the bytes it came with.
    async fn small_picture(&mut self) {
        let delivery = self.call_for("screenshot", seeing()).await;
        self.look("pixels", delivery, |sight| {
            let attachments = sight.delivery.attachments.clone();
            sight.expect("one picture", attachments.len() == 1);
            for picture in &attachments {
                let size = (picture.width, picture.height);
                sight.expect("in its own size", size == (1_280, 800));
            }
            sight.media_line(assets::SCREENSHOT);
        })
        .await;
    }

    /// A 4K screen is made to fit; a part of it is had at full size; then it becomes text.
    async fn large_picture(&mut self) {
        let Some(delivery) = self.call_for("desktop", seeing()).await else {
            return;
        };
        let screen = delivery.artifacts.first().cloned();
        let turned = json!({ "delivery": delivery });
        self.look("4K screen", Some(delivery), |sight| {
            sight.expect("one picture", sight.delivery.attachments.len() == 1);
            for picture in sight.delivery.attachments.clone() {
                let from = (picture.original_width, picture.original_height);
                sight.expect("from 4K", from == (desktop::WIDTH, desktop::HEIGHT));
                fits(sight, &picture);
            }
            sight.text_has("multiply coordinates");
        })
        .await;
        if let Some(screen) = screen {
            self.region(&screen).await;
        }
        let text = self
            .posted("downgrade", "/v1/results/downgrade", &turned)
            .await;
        self.look("downgrade", text, |sight| {
            sight.expect("no pixels", sight.delivery.attachments.is_empty());
            sight.file_count(1);
        })
        .await;
    }

    async fn region(&mut self, screen: &Artifact) {
        let request = json!({
            "source": "vision_analyze",
            "image": { "path": screen.path },
            "question": "What does the first window say?",
            "region": REGION,
            "route": seeing(),
        });
        let delivery = self.posted("region", "/v1/images/deliver", &request).await;
        self.look("region", delivery, |sight| {
            for picture in sight.delivery.attachments.clone() {
                let area = [picture.area.x, picture.area.y];
                sight.expect("from the place asked for", area == [120, 120]);
                let size = (picture.width, picture.height);
                sight.expect("at full size", size == (1_200, 800));
                fits(sight, &picture);
            }
            sight.expect("one picture", sight.delivery.attachments.len() == 1);
            sight.text_has("What does the first window say?");
        })
        .await;
    }

    async fn blind_model(&mut self) {
        let blind = Route {
            provider: "deepseek".to_owned(),
            model: "deepseek-chat".to_owned(),
            api: None,
        };
        let delivery = self.call_for("screenshot", blind).await;
        self.look("no pixels", delivery, |sight| {
            sight.expect(
                "none for a model that does not see",
                sight.delivery.attachments.is_empty(),
            );
            let reason = sight.delivery.gate.reason.clone();
            sight.note("the reason", Ok(reason));
            sight.media_line(assets::SCREENSHOT);
        })
        .await;
    }

    pub(super) async fn call_for(&mut self, tool: &'static str, route: Route) -> Option<Delivery> {
        let request = CallRequest {
            tool: public(tool),
            server: None,
            arguments: serde_json::Map::new(),
            format: Format::Talaria,
            route: Some(route),
            call_id: None,
            timeout: None,
        };
        self.posted(tool, "/v1/tools/call", &request.body()).await
    }

    /// The delivery that a route answers; a failure becomes a failed check.
    pub(super) async fn posted(
        &mut self,
        what: &str,
        path: &str,
        body: &Value,
    ) -> Option<Delivery> {
        let answer: Result<Delivery, CommandError> = self.client.post_json(path, body).await;
        match answer {
            Ok(delivery) => Some(delivery),
            Err(error) => {
                self.checks.fail(what, words(&error));
                None
            }
        }
    }

    pub(super) async fn look(
        &mut self,
        what: &'static str,
        delivery: Option<Delivery>,
        look: fn(&mut Sight),
    ) {
        if let Some(delivery) = delivery {
            self.examine(what, delivery, look).await;
        }
    }
}

fn seeing() -> Route {
    Route {
        provider: "anthropic".to_owned(),
        model: "claude-sonnet-4-5".to_owned(),
        api: None,
    }
}

/// A picture keeps to what providers take.
fn fits(sight: &mut Sight, picture: &Attachment) {
    let side = picture.width.max(picture.height);
    let characters = picture.data.len() + "data:;base64,".len() + picture.media_type.len();
    let found = format!(
        "{}×{}, {characters} characters",
        picture.width, picture.height
    );
    let fits = side <= DEFAULT_MAX_SIDE && characters <= DEFAULT_BUDGET;
    sight.note("small enough", if fits { Ok(found) } else { Err(found) });
}
