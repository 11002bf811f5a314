<?php
/**
 * Texts on the page where an order is paid.
 *
 * @package Countersign
 */

namespace Countersign\WooCommerce;

defined( 'ABSPATH' ) || exit;

/**
 * One sentence for each state: where the buyer is, and what comes next.
 */
final class Pay_Page {

	/**
	 * Add the hooks.
	 */
	public static function register(): void {
		// After Gate has read the session, before WooCommerce takes a payment.
		add_action( 'wp', array( self::class, 'lead_on' ), 15 );
		add_action( 'woocommerce_before_pay_action', array( Gateway::class, 'remember_payment' ), 0 );
		add_action( 'before_woocommerce_pay', array( self::class, 'show' ) );
		add_filter( 'woocommerce_pay_order_button_text', array( self::class, 'button' ) );
		add_filter( 'woocommerce_thankyou_order_received_text', array( self::class, 'thank' ), 20, 2 );
	}

	/**
	 * The order of the page, if it is the buyer's and has something to do with the service.
	 */
	private static function order() {
		$id    = absint( get_query_var( 'order-pay' ) );
		$order = $id > 0 ? wc_get_order( $id ) : null;
		$key   = isset( $_GET['key'] ) && is_string( $_GET['key'] ) ? wc_clean( wp_unslash( $_GET['key'] ) ) : ''; // phpcs:ignore WordPress.Security.NonceVerification.Recommended -- compared with the order's.
		return $order instanceof \WC_Order && $order->key_is_valid( $key ) && Orders::is_gated( $order ) ? $order : null;
	}

	/**
	 * A buyer who has ordered before and comes back from the notice: WooCommerce would say that the order cannot be paid.
	 */
	public static function lead_on(): void {
		$order = self::order();
		if ( $order && $order->has_status( array( 'on-hold', 'processing', 'completed' ) ) && Orders::was_cleared( $order ) && ! $order->needs_payment() ) {
			wp_safe_redirect( $order->get_checkout_order_received_url() );
			exit;
		}
	}

	/**
	 * The text for this buyer after the notice.
	 *
	 * @param string         $text  WooCommerce's.
	 * @param \WC_Order|null $order The order.
	 */
	public static function thank( $text, $order ) {
		return $order instanceof \WC_Order && $order->has_status( 'on-hold' ) && $order->get_date_paid() && Orders::is_gated( $order ) && Orders::was_cleared( $order )
			? __( 'Your notice is recorded, and your payment has arrived: nothing is missing. The shop goes on with your order.', 'countersign-woocommerce' )
			: $text;
	}

	/**
	 * The sentence.
	 */
	public static function show(): void {
		$order = self::order();
		if ( ! $order || ! $order->needs_payment() ) {
			return;
		}
		$paid   = null !== $order->get_date_paid();
		$charge = $paid ? __( 'We have your payment: nothing is charged again.', 'countersign-woocommerce' ) : __( 'Nothing was charged.', 'countersign-woocommerce' );
		switch ( Orders::state( $order ) ) {
			case 'cleared':
				if ( Orders::may_be_paid( $order ) ) {
					wc_print_notice( __( 'Your notice is recorded: you can pay now.', 'countersign-woocommerce' ), 'success' );
					return;
				}
				$words = __( 'Your notice is recorded. It is looked at once more before you pay: go on below.', 'countersign-woocommerce' );
				break;
			case 'not_needed':
				return;
			case 'undecided':
				$words = __( 'Your notice is recorded, and your identity check is not decided yet. You get an e-mail as soon as it is.', 'countersign-woocommerce' );
				break;
			case 'refused':
				$words = __( 'Your order was not released. You can go through the notice again, or ask the shop.', 'countersign-woocommerce' );
				break;
			case 'declined':
				$words = __( 'You did not initial the notice. You can go through it after all, or ask the shop.', 'countersign-woocommerce' );
				break;
			case 'changed':
				$words = __( 'The address or the products were changed after your notice. Please go through it again.', 'countersign-woocommerce' );
				break;
			default:
				$words = __( 'The legal notice of this order is not finished: go on with it below.', 'countersign-woocommerce' );
		}
		wc_print_notice( $words . ' ' . $charge, 'notice' );
	}

	/**
	 * The button, also without scripts.
	 *
	 * @param string $text What it says.
	 */
	public static function button( $text ) {
		$order = self::order();
		return $order && ! Orders::may_be_paid( $order ) ? ( new Gateway() )->order_button_text : $text;
	}
}
