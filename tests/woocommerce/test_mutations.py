"""The removal of any gate of the plugin is detected, by an open way or another response.

All in one WordPress, whose copy of the plugin is changed and read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import pytest

from tests.woocommerce import parcels, paths, test_copies, test_gates, test_need, test_orders
from tests.woocommerce.conftest import Browser, Shop
from tests.woocommerce.paths import Attempt, unpaid

pytestmark = [pytest.mark.shops, pytest.mark.long, pytest.mark.one_engine]
Catch = Callable[[Attempt], Any]


@dataclass(frozen=True)
class Mutation:
    """A gate without which something is paid, shipped or reported wrongly, and its tests."""

    name: str
    file: str
    old: str
    new: str
    caught_by: Catch


def _test(function: Callable[[Shop, Browser], None]) -> Catch:
    return lambda a: function(a.shop, a.buyer)


def _without_webhooks(path: Catch) -> Catch:
    """A webhook about the session makes the plugin decide anew, and that is a gate of its own."""

    def catch(a: Attempt) -> object:
        with a.shop.without_webhooks():
            return path(a)

    return catch


def _hook(name: str, file: str, caught_by: Catch, kind: str = "add_filter") -> Mutation:
    """The hook is not added."""
    return Mutation(f"no {name}", file, f"{kind}( '{name}'", "array( ''", caught_by)


MUTATIONS: Final = (
    _hook("woocommerce_available_payment_gateways", "gate", paths.the_classic_checkout),
    Mutation(
        "the other gateways, and not the notice",
        "gate",
        "if ( $gated ) {",
        "if ( ! $gated ) {",
        paths.the_page_for_the_payment_of_an_order_that_staff_made,
    ),
    Mutation(
        "a cart is never gated",
        "gate",
        "$gated = WC()->cart && self::is_cart_gated( WC()->cart, is_product()",
        "$gated = false && intval( is_product()",
        paths.the_classic_checkout,
    ),
    Mutation(
        "an order is never gated on its page",
        "gate",
        "$gated = ! Orders::may_be_paid( $order );",
        "$gated = false;",
        paths.the_page_for_the_payment_of_an_order_that_staff_made,
    ),
    Mutation(
        "the order of a request is not known",
        "gate",
        "Orders::find( self::$order_id ) ?? Orders",
        "Orders",
        paths.an_app_without_a_cart,
    ),
    _hook(
        "woocommerce_cart_needs_payment", "gate", paths.the_classic_checkout_when_it_costs_nothing
    ),
    _hook("woocommerce_order_needs_payment", "gate", paths.a_free_order_of_the_block_checkout),
    _hook(
        "woocommerce_checkout_order_processed",
        "gate",
        paths.goods_that_lost_their_class_while_in_the_cart,
        "add_action",
    ),
    _hook(
        "woocommerce_store_api_checkout_order_processed",
        "gate",
        paths.an_app_of_a_buyer_who_was_revoked,
        "add_action",
    ),
    Mutation(
        "no question when the buyer pays",
        "gate",
        "array( self::class, 'before_pay_action' )",
        "'__return_true'",
        paths.the_page_for_the_payment_of_a_buyer_who_was_revoked,
    ),
    Mutation(
        "the service is not asked before a payment",
        "gate",
        "Orders::locked( $order->get_id(), array( Orders::class, $act ) );",
        "",
        paths.the_page_for_the_payment_of_a_buyer_who_was_revoked,
    ),
    Mutation(
        "what is stored is not looked at before a payment",
        "gate",
        "return Orders::may_be_paid( $order );\n\t}\n\n\t/**\n\t * The buyer is at",
        "return true;\n\t}\n\n\t/**\n\t * The buyer is at",
        paths.goods_that_lost_their_class_while_in_the_cart,
    ),
    _hook(
        "woocommerce_before_order_object_save",
        "state-machine",
        paths.another_program_that_says_paid,
        "add_action",
    ),
    Mutation(
        "completing is allowed",
        "state-machine",
        "'completed' => 'done',",
        "'completed' => 'unpaid',",
        paths.another_plugin_that_completes_an_order,
    ),
    Mutation(
        "processing is allowed",
        "state-machine",
        "in_array( $status, wc_get_is_paid_statuses(), true ) ? 'paid' : 'unpaid'",
        "'unpaid'",
        paths.another_program_that_says_paid,
    ),
    Mutation(
        "an order that is not cleared any more goes on",
        "state-machine",
        "( $arrives || 'paid' === $is['wants'] );",
        "$arrives;",
        _test(test_orders.test_a_paid_order_whose_address_changes_goes_on_hold),
    ),
    Mutation(
        "the day of completion stays",
        "state-machine",
        "$order->set_date_completed( null );",
        "",
        paths.another_plugin_that_completes_an_order,
    ),
    Mutation(
        "completing believes what is stored",
        "state-machine",
        "( 'done' === $is['wants'] || ! $yes || ! $is['fresh'] )",
        "( ! $yes || ! $is['fresh'] )",
        parcels.a_buyer_who_was_revoked,
    ),
    Mutation(
        "a free order is paid by opening its page",
        "gate",
        "if ( $order->needs_payment() ) {\n\t\t\treturn;",
        "if ( false ) {\n\t\t\treturn;",
        paths.a_free_order_whose_page_is_opened,
    ),
    Mutation(
        "a cart for another place counts as the order",
        "gate",
        "&& Need::place( $order ) === Need::place( $new )",
        "",
        _test(test_gates.test_a_cleared_order_is_paid_at_the_checkout_too),
    ),
    Mutation(
        "another plugin takes the notice away",
        "gate",
        "return array_intersect_key( WC()->payment_gateways()->payment_gateways(),",
        "return array_intersect_key( $gateways,",
        _test(test_gates.test_no_other_plugin_takes_the_notice_away),
    ),
    Mutation(
        "a cancelled order keeps its session",
        "state-machine",
        "self::attempt( $order, array( Orders::class, 'end_session' ) );",
        "",
        _test(test_gates.test_a_cancelled_order_ends_its_session),
    ),
    Mutation(
        "another address keeps the first session",
        "orders",
        "if ( 'changed' === self::state( $order ) ) {\n\t\t\tself::end",
        "if ( false ) {\n\t\t\tself::end",
        _test(test_gates.test_the_session_for_another_address_is_ended),
    ),
    Mutation(
        "a clearance has no end",
        "orders",
        "self::data( $order )['until'] > time()",
        "true",
        paths.a_clearance_that_has_expired,
    ),
    Mutation(
        "what was cleared once stays so",
        "orders",
        "( self::was_cleared( $order ) && self::data",
        "( self::data",
        paths.a_page_that_was_loaded_before_the_address_changed,
    ),
    Mutation(
        "another address is the same question",
        "orders",
        "if ( self::subject( $order ) !== $data['subject'] || (",
        "if ( (",
        paths.a_page_that_was_loaded_before_the_address_changed,
    ),
    Mutation(
        "another billing address is the same question",
        "orders",
        "|| ( '' !== $data['residence'] && Need::residence( $order ) !== $data['residence'] )",
        "",
        _test(test_gates.test_a_changed_billing_address_makes_the_order_wait_again),
    ),
    Mutation(
        "what is about another order counts",
        "orders",
        "$stored['order'] === $order->get_id() &&",
        "",
        _without_webhooks(paths.a_copy_of_a_cleared_order),
    ),
    Mutation(
        "a parcel of another order has left",
        "orders",
        "$stored['order'] === $order->get_id() &&",
        "",
        parcels.a_copy_of_an_order_that_was_shipped,
    ),
    Mutation(
        "a decision names no order",
        "orders",
        "'order_reference' => self::number( $order ),\n\t\t\t\t\t'shipping_zip'",
        "'shipping_zip'",
        _test(test_copies.test_a_decision_initialed_for_another_order_does_not_count),
    ),
    Mutation(
        "opening a page asks for a decision",
        "gate",
        "Orders::refresh( $order );",
        "Orders::settle( $order );",
        _test(test_copies.test_opening_a_page_asks_for_no_decision),
    ),
    Mutation(
        "every decision is a yes",
        "orders",
        "return '' === $data['override'] ? 'refused' : 'overridden';",
        "return 'cleared';",
        parcels.a_buyer_who_was_revoked,
    ),
    Mutation(
        "no parcel is asked about",
        "state-machine",
        "Orders::decide( $order );",
        "",
        parcels.a_buyer_who_was_revoked,
    ),
    Mutation(
        "items keep no class",
        "products",
        "$item->update_meta_data( self::META, implode( ' ', $classes ) );",
        "",
        paths.goods_that_were_deleted_before_their_order_was_begun,
    ),
    Mutation(
        "what items keep is not read",
        "products",
        "$kept[]     = (string) $item->get_meta( self::META );",
        "",
        paths.goods_that_were_deleted_before_their_order_was_begun,
    ),
    Mutation(
        "what was begun is forgotten",
        "orders",
        "array_merge( Products::classes_of_items( $order->get_items() ), "
        "self::stored( $order )['classes'] )",
        "Products::classes_of_items( $order->get_items() )",
        paths.goods_that_lost_their_class_while_in_the_cart,
    ),
    Mutation(
        "categories have no class",
        "products",
        "$classes[] = (string) get_term_meta( $one, self::META, true );",
        "",
        paths.goods_of_a_classed_category,
    ),
    Mutation(
        "a product has no class of its own",
        "products",
        "$own     = $product ? (string) $product->get_meta( self::META ) : '';",
        "$own     = '';",
        paths.a_mixed_cart,
    ),
    Mutation(
        "what is unknown is not needed",
        "need",
        "return 'not_required' === ( self::of",
        "return 'required' !== ( self::of",
        paths.an_address_in_another_state,
    ),
    Mutation(
        "barrels are sold",
        "orders",
        "if ( 'not_sufficient' === ( $warning['type'] ?? '' ) ) {",
        "if ( false ) {",
        _test(test_orders.test_a_barrel_is_not_sold),
    ),
    Mutation(
        "the shop's choice is ignored",
        "need",
        " || self::is_californian( $order ) )",
        " )",
        _test(test_gates.test_a_californian_zip_code_makes_the_residence_unknown),
    ),
    Mutation(
        "nothing is needed while the service is away",
        "need",
        "( Service_Error $error ) {\n\t\t\treturn false;",
        "( Service_Error $error ) {\n\t\t\treturn true;",
        _test(test_need.test_while_the_service_is_away_the_checkout_has_the_notice),
    ),
    Mutation(
        "goods that are not sent go where their buyer lives",
        "gate",
        "|| $cart->needs_shipping() )",
        "|| true )",
        _test(test_need.test_goods_that_are_not_sent_have_the_notice),
    ),
    Mutation(
        "two requests decide at once",
        "orders",
        "if ( '1' !== (string) $wpdb->get_var",
        "if ( '2' === (string) $wpdb->get_var",
        _test(test_orders.test_two_requests_do_not_decide_one_order_at_once),
    ),
)


@pytest.fixture(scope="module")
def staff(shop: Shop) -> Iterator[Browser]:
    made = shop.browser()
    with made.client:
        made.log_in("a_shop_manager", "p")
        yield made


@contextmanager
def _mutated(shop: Shop, mutation: Mutation) -> Iterator[None]:
    file = shop.wp.plugin / "includes" / f"{mutation.file}.php"
    right = file.read_text("utf-8")
    assert right.count(mutation.old) == 1, "no such code: change the mutation with the plugin"
    read_again = "return opcache_invalidate($file, true);"
    try:
        file.write_text(right.replace(mutation.old, mutation.new), "utf-8")
        assert shop.wp.php(read_again, file=str(file))
        yield
    finally:
        file.write_text(right, "utf-8")
        assert shop.wp.php(read_again, file=str(file))


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda one: one.name)
def test_a_removed_gate_is_detected(shop: Shop, staff: Browser, mutation: Mutation) -> None:
    """By a result for a buyer or the staff, and not by an error of PHP."""
    buyer = shop.browser()
    log = shop.wp.folder / "debug.log"
    said = log.read_text("utf-8") if log.exists() else ""
    with buyer.client, _mutated(shop, mutation), pytest.raises(AssertionError):
        unpaid(mutation.caught_by(Attempt(shop=shop, buyer=buyer, staff=staff, gateway="cod")))
    if log.exists():
        assert "PHP Fatal" not in log.read_text("utf-8").removeprefix(said)
