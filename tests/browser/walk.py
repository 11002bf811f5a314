"""A buyer in a real browser, who orders in the example shop."""

from __future__ import annotations

from playwright.sync_api import Page

from tests.storefront.shopper import ADDRESS


class Walk:
    """The steps of a purchase, each using only visible elements."""

    def __init__(self, page: Page, shop: str) -> None:
        self.page, self.shop = page, shop

    def press(self, words: str) -> None:
        self.page.get_by_role("button", name=words, exact=True).click()
        self.page.wait_for_load_state()

    def follow(self, words: str) -> None:
        self.page.get_by_role("link", name=words).click()
        self.page.wait_for_load_state()

    def add(self, product: str) -> None:
        self.page.goto(f"{self.shop}/products/{product}")
        self.press("Add to cart")

    def fill(self, **address: str) -> None:
        """Fill the form of the checkout."""
        self.page.goto(f"{self.shop}/checkout")
        for name, value in {**ADDRESS, **address}.items():
            field = self.page.locator(f"#{name}")
            field.select_option(value) if name in {"state", "residence"} else field.fill(value)

    def order(self, **address: str) -> None:
        """Order the cart, which leads to the page of the notice."""
        self.fill(**address)
        self.press("Order")

    def order_here(self) -> None:
        """Order, which leads to the page of the shop with the component."""
        self.fill()
        self.press("Order, with the notice in this page")

    def identify(self) -> None:
        self.page.get_by_label("Verified", exact=True).check()
        failed = self.page.get_by_role("button", name="Try again", exact=True)
        self.press("Try again" if failed.count() else "Start the identity check")

    def identify_apart(self) -> None:
        """The identity check that the component leads to, in a window of its own."""
        with self.page.context.expect_page() as opened:
            self.page.get_by_role("link", name="Continue on the secure page").click()
        apart = Walk(opened.value, self.shop)
        apart.identify()
        apart.page.get_by_label("Your initials for line 1").wait_for()
        apart.page.close()
        # A hidden window that becomes visible reloads; headless windows are never hidden.
        self.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        self.page.get_by_label("Your initials for line 1").wait_for()

    def initial(self) -> None:
        """Initial every line, and go on to the review."""
        self.page.get_by_role("button", name="Continue to review").wait_for()
        for field in self.page.get_by_label("Your initials for line").all():
            field.fill("JD")
        self.press("Continue to review")

    def agree(self) -> None:
        """Agree to everything in the review."""
        self.page.get_by_role("button", name="Agree and send").wait_for()
        for box in self.page.get_by_role("checkbox").all():
            box.check()
        self.press("Agree and send")
