"""A real browser, and the page in it as a person uses it."""

import base64
import json
import shutil
from urllib.request import urlopen

import pytest
from selenium import webdriver
from selenium.common.exceptions import (
    ElementClickInterceptedException,
    StaleElementReferenceException,
)
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

PATIENCE = 30  # seconds
FRAMES = "const later = (then) => requestAnimationFrame(() => requestAnimationFrame(then));"
SETTLED = """
const near = ({ top, bottom }) => bottom > -290 && top < innerHeight + 290;
const isMissing = (place) =>
  place.checkVisibility() &&
  near(place.getBoundingClientRect()) &&
  place.childNodes.length === 0;
const isSettled = () =>
  document.querySelector("h1, .notice") !== null &&
  document.querySelector("[aria-busy], .loading") === null &&
  ![...document.querySelectorAll(".picture-place")].some(isMissing);
"""
"""Nothing is loading: no region, and no picture that is in sight or about to be."""


def start_browser():
    """Headless Chromium, or a skip that says how to get it."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if not browser or not driver:
        pytest.skip("no browser to look at the page: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options, webdriver.ChromeService(driver))


class Page:
    """The page of one served model, as a person uses it.

    Args:
        driver: of the browser.
        base: the address of the service.
        shots: the folder for pictures.
    """

    def __init__(self, driver, base, shots):
        self.driver, self.base, self.shots = driver, base, shots
        # A list may be drawn anew between finding an element and using it.
        passing = (StaleElementReferenceException, ElementClickInterceptedException)
        self._waiting = WebDriverWait(driver, PATIENCE, 0.05, passing)

    def open(self, address=""):
        """Load the page anew."""
        self.driver.get("about:blank")
        self.driver.get(f"{self.base}/{address}")
        self.settle()
        return self

    def resize(self, width, height=900):
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def prefer(self, scheme):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def settle(self):
        """Wait until nothing is loading, two frames after whatever an event has started."""
        script = f"{FRAMES}{SETTLED}later(() => arguments[0](isSettled()));"
        self.wait(lambda: self.driver.execute_async_script(script))

    def wait(self, condition):
        """Wait until a condition holds; gives its value."""
        return self._waiting.until(lambda _: condition())

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        (element,) = self.all(selector)
        return element

    def texts(self, selector):
        script = "return [...document.querySelectorAll(arguments[0])].map((node) => node.innerText)"
        return [text.strip() for text in self.run(script, selector)]

    def text(self):
        """The text of the view."""
        return self.texts("main")[0]

    def field(self, label):
        """The control of a label."""
        labels = [element for element in self.all("label") if element.text == label]
        return self.driver.find_element(By.ID, labels[0].get_attribute("for"))

    def click(self, text):
        """Click the button with a text."""
        self.hit(lambda: [button for button in self.all("button, .button") if button.text == text])

    def hit(self, find):
        """Click the first element found, once nothing is loading and it stands still."""
        script = f"""{FRAMES}{SETTLED}
        const [element, done] = arguments;
        element.scrollIntoView({{ block: "center", behavior: "instant" }});
        const before = element.getBoundingClientRect();
        later(() => {{
          const after = element.getBoundingClientRect();
          done(isSettled() && after.top === before.top && after.left === before.left);
        }});
        """

        def click():
            found = find()
            if not found or not self.driver.execute_async_script(script, found[0]):
                return False
            found[0].click()
            return True

        self.wait(click)
        self.settle()

    def complete(self, label, text):
        """Type into a field, and take its first suggestion by keyboard; gives the suggestion."""
        field = self.field(label)
        self.hit(lambda: [field])
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys(Keys.BACKSPACE, text, Keys.ARROW_DOWN)
        self.wait(lambda: self.all("[role=option][aria-selected=true]"))
        first = self.options()[0]
        field.send_keys(Keys.ENTER)
        assert field.get_attribute("value") == first
        assert not self.options()
        self.settle()
        return first

    def options(self):
        return self.texts("[role=listbox]:not([hidden]) .option-name")

    def press(self, *keys):
        self.driver.switch_to.active_element.send_keys(*keys)
        self.settle()

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def overflows(self):
        """Whether it has to be scrolled sideways."""
        return self.run("return document.documentElement.scrollWidth > innerWidth")

    def shot(self, name, *elements):
        """Keep a picture of the window, or of the box around some elements in it."""
        path = self.shots / f"{name}.png"
        if not elements:
            self.driver.save_screenshot(str(path))
            return
        boxes = [element.rect for element in elements]
        left, top = (min(box[side] for box in boxes) - 12 for side in "xy")
        right = max(box["x"] + box["width"] for box in boxes) + 12
        bottom = max(box["y"] + box["height"] for box in boxes) + 12
        clip = {"x": left, "y": top, "width": right - left, "height": bottom - top, "scale": 1}
        shot = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip})
        path.write_bytes(base64.b64decode(shot["data"]))

    def complaints(self):
        """Messages in the browser's console since the last call, failed requests aside."""
        log = self.driver.get_log("browser")
        return [
            entry["message"] for entry in log if "Failed to load resource" not in entry["message"]
        ]

    def requests(self):
        """The addresses requested since the last call."""
        messages = (json.loads(entry["message"]) for entry in self.driver.get_log("performance"))
        events = (message["message"] for message in messages)
        return [
            event["params"]["request"]["url"]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
        ]

    def get(self, path):
        """The JSON that the service returns for a path."""
        with urlopen(f"{self.base}/api/v1/{path}") as answer:
            return json.load(answer)
