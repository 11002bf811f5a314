<?php
/**
 * Nothing is paid, and nothing is completed, before the service has said yes.
 *
 * Each hook is one that WooCommerce documents, at the place that is named with it.
 *
 * @package Countersign
 */

namespace Countersign\WooCommerce;

defined( 'ABSPATH' ) || exit;

/**
 * The hooks of checkout, of the page where an order is paid, and of its status.
 */
final class Gate {

	/**
	 * Add the hooks. Ours come last: what others allow is taken away again.
	 */
	public static function register(): void {
		add_filter( 'woocommerce_payment_gateways', array( self::class, 'add_gateway' ) );
		add_filter( 'woocommerce_gateway_' . Gateway::ID . '_settings_values', array( Gateway::class, 'stays_on' ), 10, 2 );
		add_action( 'wp_ajax_woocommerce_toggle_gateway_enabled', array( Gateway::class, 'refuse_switch' ), 1 );
		add_action( 'admin_head-woocommerce_page_wc-settings', array( Gateway::class, 'hide_switch' ) );
		// The block checkout's registry of payment methods.
		add_action( 'woocommerce_blocks_payment_method_type_registration', array( self::class, 'add_block_method' ) );
		add_action( 'init', array( self::class, 'require_notice' ) );
		// WC_Payment_Gateways::get_available_payment_gateways().
		add_filter( 'woocommerce_available_payment_gateways', array( self::class, 'choose_gateways' ), PHP_INT_MAX );
		// WC_Cart::needs_payment(), WC_Order::needs_payment(): an order that needs no payment is paid at once.
		add_filter( 'woocommerce_cart_needs_payment', array( self::class, 'cart_needs_payment' ), PHP_INT_MAX, 2 );
		add_filter( 'woocommerce_order_needs_payment', array( self::class, 'order_needs_payment' ), PHP_INT_MAX, 3 );
		// WC_Checkout::process_checkout(): just before a payment.
		add_action( 'woocommerce_checkout_order_processed', array( self::class, 'before_payment' ), PHP_INT_MAX, 3 );
		// WC_Form_Handler::pay_action(), which runs in `wp` with the priority 20.
		add_action( 'wp', array( self::class, 'come_back' ), 10 );
		add_action( 'woocommerce_before_pay_action', array( self::class, 'before_pay_action' ), 1 );
	}

	/**
	 * Add ours to the gateways of the shop.
	 *
	 * @param array $gateways Classes or objects.
	 */
	public static function add_gateway( $gateways ) {
		$gateways[] = Gateway::class;
		return $gateways;
	}

	/**
	 * Add ours to the payment methods of the block checkout.
	 *
	 * @param \Automattic\WooCommerce\Blocks\Payments\PaymentMethodRegistry $registry The registry.
	 */
	public static function add_block_method( $registry ): void {
		require_once __DIR__ . '/block-method.php';
		$registry->register( new Block_Method() );
	}

	/**
	 * Only ours before the order is cleared, and never ours afterwards.
	 *
	 * @param array $gateways By id.
	 */
	public static function choose_gateways( $gateways ) {
		$order = Orders::find( Store_Api::order_id() ) ?? self::order_to_pay();
		if ( $order ) {
			$gated = ! Orders::may_be_paid( $order );
		} else {
			$gated = WC()->cart && self::is_cart_gated( WC()->cart );
		}
		if ( $gated ) {
			return array_intersect_key( $gateways, array( Gateway::ID => true ) );
		}
		unset( $gateways[ Gateway::ID ] );
		return $gateways;
	}

	/**
	 * A cart that is gated is never sold without a word, also if it costs nothing.
	 *
	 * @param bool     $needed Whether it costs something.
	 * @param \WC_Cart $cart   The cart.
	 */
	public static function cart_needs_payment( $needed, $cart ) {
		return $needed || ( $cart && self::is_cart_gated( $cart ) );
	}

	/**
	 * An order that is not cleared is open for our own gateway: also if it costs nothing, and if it was paid and is on hold.
	 *
	 * @param bool      $needed   Whether it can be paid.
	 * @param \WC_Order $order    The order.
	 * @param array     $statuses In which it can be paid.
	 */
	public static function order_needs_payment( $needed, $order, $statuses = array( 'pending', 'failed' ) ) {
		if ( $order->has_status( 'on-hold' ) ) {
			return $needed || ! Orders::was_cleared( $order );
		}
		return $needed || ( $order->has_status( $statuses ) && ! Orders::may_be_paid( $order ) );
	}

	/**
	 * The last moment before a payment at the checkout: an exception is shown to the buyer, and nothing is paid.
	 *
	 * @param int       $order_id The order.
	 * @param array     $posted   What the buyer sent.
	 * @param \WC_Order $order    The order.
	 * @throws \Exception If it is not cleared, and is to be paid.
	 */
	public static function before_payment( $order_id, $posted, $order ): void {
		try {
			if ( ! self::may_be_given( $order ) ) {
				throw new \Exception( esc_html( self::not_released() ) );
			}
		} catch ( Service_Error $error ) {
			throw new \Exception( esc_html( self::sorry() ) );
		}
	}

	/**
	 * Whether an order may be given to the gateway that was chosen for it: to our own in any case.
	 *
	 * @param \WC_Order $order The order.
	 * @throws Service_Error If the service refuses or does not respond.
	 */
	public static function may_be_given( $order ): bool {
		return Gateway::ID === $order->get_payment_method() || self::is_released( $order );
	}

	/**
	 * Whether an order may be paid. If it may by what is stored, the service is asked once more; else it may need nothing.
	 *
	 * @param \WC_Order $order The order.
	 * @throws Service_Error If the service refuses or does not respond.
	 */
	public static function is_released( $order ): bool {
		if ( ! Orders::is_gated( $order ) ) {
			return true;
		}
		$act = Orders::may_be_paid( $order ) ? 'decide' : 'excuse';
		Orders::locked( $order->get_id(), array( Orders::class, $act ) );
		// The checkout goes on with the object that it has.
		$order->read_meta_data( true );
		return Orders::may_be_paid( $order );
	}

	/**
	 * The buyer is at the page where the order is paid, perhaps back from the notice. The service decides, not the address:
	 * what it has decided is read. Anybody can open a page, a mail scanner too, so it asks for no decision.
	 */
	public static function come_back(): void {
		$order = self::order_to_pay();
		// The key of the order: others cannot make this shop send requests.
		$key = isset( $_GET['key'] ) && is_string( $_GET['key'] ) ? wc_clean( wp_unslash( $_GET['key'] ) ) : ''; // phpcs:ignore WordPress.Security.NonceVerification.Recommended -- compared with the order's.
		if ( ! $order || ! $order->key_is_valid( $key ) || ! Orders::is_gated( $order ) ) {
			return;
		}
		try {
			$order = Orders::locked(
				$order->get_id(),
				static function ( $order ) {
					Orders::refresh( $order );
					Orders::excuse( $order );
				}
			);
		} catch ( Service_Error $error ) {
			wc_add_notice( self::sorry(), 'error' );
			return;
		}
		if ( Orders::may_be_paid( $order ) && ! $order->needs_payment() && $order->has_status( array( 'pending', 'failed' ) ) ) {
			// It costs nothing.
			$order->payment_complete();
			wp_safe_redirect( $order->get_checkout_order_received_url() );
			exit;
		}
	}

	/**
	 * The buyer pays: the service is asked once more.
	 *
	 * @param \WC_Order $order The order.
	 */
	public static function before_pay_action( $order ): void {
		if ( ! Orders::may_be_paid( $order ) ) {
			// Only our own gateway is there to choose.
			return;
		}
		try {
			if ( self::is_released( $order ) ) {
				return;
			}
			wc_add_notice( self::not_released(), 'error' );
		} catch ( Service_Error $error ) {
			wc_add_notice( self::sorry(), 'error' );
		}
		wp_safe_redirect( $order->get_checkout_payment_url() );
		exit;
	}

	/**
	 * The order whose page for payment this is, or null.
	 */
	private static function order_to_pay() {
		return Orders::find( absint( get_query_var( 'order-pay' ) ) );
	}

	/**
	 * Whether a cart has anything that needs the notice at the address of its buyer; without an address it does.
	 *
	 * @param \WC_Cart $cart The cart.
	 */
	private static function is_cart_gated( $cart ): bool {
		$classes = Products::classes_of( array_map( 'intval', array_column( $cart->get_cart(), 'product_id' ) ) );
		return array() !== $classes && ! ( WC()->customer && $cart->needs_shipping() && Need::is_nothing( Need::of_checkout(), $classes ) );
	}

	/**
	 * The block cart and checkout hide each way to pay that does not declare what the cart requires: express buttons, too.
	 */
	public static function require_notice(): void {
		woocommerce_store_api_register_payment_requirements(
			array(
				'data_callback' => static function () {
					return WC()->cart && self::is_cart_gated( WC()->cart ) ? array( Gateway::ID ) : array();
				},
			)
		);
	}

	/**
	 * For a buyer, if the service does not respond.
	 */
	public static function sorry(): string {
		return __( 'We could not check your order. Nothing was charged: please try again in a few minutes.', 'countersign-woocommerce' );
	}

	/**
	 * For a buyer, if the service says no.
	 */
	public static function not_released(): string {
		return __( 'This order cannot be paid before its legal notice is initialed and it is released. Nothing was charged.', 'countersign-woocommerce' );
	}
}
