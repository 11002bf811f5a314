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

use Automattic\WooCommerce\StoreApi\Exceptions\RouteException;

/** The hooks of both checkouts (the Store API is that of the block checkout and of apps), and of the page where an order is paid. */
final class Gate {
	/** @var int The order in the address of the request, `/wc/store/v1/checkout/{id}`; 0 if it has none. */
	private static $order_id = 0;

	/** Add the hooks. Ours come last: what others allow is taken away again. */
	public static function register(): void {
		add_filter( 'woocommerce_payment_gateways', array( self::class, 'add_gateway' ) );
		add_filter( 'woocommerce_gateway_' . Gateway::ID . '_settings_values', array( Gateway::class, 'stays_on' ), 10, 2 );
		add_action( 'wp_ajax_woocommerce_toggle_gateway_enabled', array( Gateway::class, 'refuse_switch' ), 1 );
		add_action( 'admin_head-woocommerce_page_wc-settings', array( Gateway::class, 'hide_switch' ) );
		// The block checkout's registry of payment methods.
		add_action( 'woocommerce_blocks_payment_method_type_registration', array( self::class, 'add_block_method' ) );
		add_action( 'init', array( self::class, 'require_notice' ) );
		// Express buttons that ask for no list of gateways: those of WooCommerce PayPal Payments, on the mini-cart.
		add_filter( 'woocommerce_paypal_payments_buttons_disabled', array( self::class, 'hide_express' ), PHP_INT_MAX, 2 );
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
		// WP_REST_Server::respond_to_request(): around each request, those of a batch too.
		add_filter( 'rest_request_before_callbacks', array( self::class, 'note_order' ), 10, 3 );
		add_filter( 'rest_request_after_callbacks', array( self::class, 'forget_order' ) );
		// The routes Checkout and CheckoutOrder: just before a payment.
		add_action( 'woocommerce_store_api_checkout_order_processed', array( self::class, 'before_api_payment' ), PHP_INT_MAX );
		add_action( 'woocommerce_before_pay_action', array( Gateway::class, 'remember_payment' ), 0 );
		add_action( 'before_woocommerce_pay', array( self::class, 'show_state' ) );
		add_filter( 'woocommerce_pay_order_button_text', array( self::class, 'button_text' ) );
		add_filter( 'woocommerce_thankyou_order_received_text', array( self::class, 'thank_buyer' ), 20, 2 );
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
		$order = Orders::find( self::$order_id ) ?? Orders::find( absint( get_query_var( 'order-pay' ) ) );
		if ( $order ) {
			$gated = ! Orders::may_be_paid( $order );
		} else {
			// The page of a product: its express buttons are for the product and what is in the cart.
			$gated = WC()->cart && self::is_cart_gated( WC()->cart, is_product() ? (int) get_queried_object_id() : 0 );
		}
		if ( $gated ) {
			// Also where another plugin has taken ours away, as one for subscriptions does.
			return array_intersect_key( WC()->payment_gateways()->payment_gateways(), array( Gateway::ID => true ) );
		}
		unset( $gateways[ Gateway::ID ] );
		return $gateways;
	}

	/**
	 * No button on the mini-cart that pays at once, while the cart needs the notice.
	 *
	 * @param bool   $hidden Whether it is hidden.
	 * @param string $place  Where it is.
	 */
	public static function hide_express( $hidden, $place = '' ) {
		return $hidden || ( 'mini-cart' === $place && WC()->cart && self::is_cart_gated( WC()->cart ) );
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
		if ( 'shop_order' !== $order->get_type() ) {
			// A subscription: its orders are paid.
			return $needed;
		}
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
		$refusal = self::refusal( $order );
		if ( array() !== $refusal ) {
			throw new \Exception( esc_html( $refusal[1] ) );
		}
	}

	/**
	 * The same for apps and the block checkout.
	 *
	 * @param \WC_Order $order The order.
	 * @throws RouteException If it is not cleared, and is to be paid.
	 */
	public static function before_api_payment( $order ): void {
		$refusal = self::refusal( $order );
		if ( array() !== $refusal ) {
			throw new RouteException( esc_html( $refusal[0] ), esc_html( $refusal[1] ), (int) $refusal[2] );
		}
	}

	/**
	 * Why an order may not be given to the gateway that was chosen for it; our own gets it in any case.
	 *
	 * @param \WC_Order $order The order.
	 * @return array A code, words for the buyer, and an HTTP status; empty: it may.
	 */
	private static function refusal( $order ): array {
		try {
			$may = Gateway::ID === $order->get_payment_method() || self::is_released( $order );
			return $may ? array() : array( 'countersign_not_cleared', self::not_released(), 400 );
		} catch ( Service_Error $error ) {
			return array( 'countersign_unavailable', self::sorry(), 503 );
		}
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
		// With the key of the order: others cannot make this shop send requests.
		$order = self::order_to_pay();
		if ( ! $order ) {
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
		if ( $order->needs_payment() ) {
			return;
		}
		if ( $order->has_status( array( 'pending', 'failed' ) ) ) {
			// It costs nothing, and is cleared: see order_needs_payment().
			$order->payment_complete();
		} elseif ( ! $order->has_status( array( 'on-hold', 'processing', 'completed' ) ) ) {
			return;
		}
		// Also a buyer who has paid before: WooCommerce would say that the order cannot be paid.
		wp_safe_redirect( $order->get_checkout_order_received_url() );
		exit;
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
	 * Whether a cart has anything that needs the notice at the address of its buyer; without an address it does.
	 *
	 * @param \WC_Cart $cart  The cart.
	 * @param int      $shown A product that counts as in it; 0: none.
	 */
	private static function is_cart_gated( $cart, int $shown = 0 ): bool {
		$classes = Products::classes_of( array_map( 'intval', array_merge( array( $shown ), array_column( $cart->get_cart(), 'product_id' ) ) ) );
		if ( array() === $classes || ! WC()->customer ) {
			return array() !== $classes;
		}
		$new = Need::of_checkout();
		// A plugin for subscriptions leads from the page for the payment back to the checkout, with the order and its goods.
		$order = 0 === $shown && WC()->session ? Orders::find( absint( WC()->session->get( 'order_awaiting_payment' ) ) ) : null;
		if ( $order && $order->has_cart_hash( $cart->get_cart_hash() ) && Need::place( $order ) === Need::place( $new ) && Orders::may_be_paid( $order ) ) {
			return false;
		}
		return ! ( ( $cart->is_empty() || $cart->needs_shipping() ) && Need::is_nothing( $new, $classes ) );
	}

	/** The block cart and checkout hide each way to pay that does not declare what the cart requires: express buttons, too. */
	public static function require_notice(): void {
		woocommerce_store_api_register_payment_requirements(
			array(
				'data_callback' => static function () {
					return WC()->cart && self::is_cart_gated( WC()->cart ) ? array( Gateway::ID ) : array();
				},
			)
		);
	}

	/** For a buyer, if the service does not respond. */
	public static function sorry(): string {
		return __( 'We could not check your order. Nothing was charged: please try again in a few minutes.', 'countersign-woocommerce' );
	}

	/** For a buyer, if the service says no. */
	public static function not_released(): string {
		return __( 'This order cannot be paid before its legal notice is initialed and it is released. Nothing was charged.', 'countersign-woocommerce' );
	}

	/**
	 * Note the order of a request. WooCommerce itself looks who may pay it.
	 *
	 * @param mixed            $response Passed on.
	 * @param array            $handler  Of the route.
	 * @param \WP_REST_Request $request  The request.
	 */
	public static function note_order( $response, $handler, $request ) {
		$found          = preg_match( '~^/wc/store(?:/v[0-9]+)?/checkout/([0-9]+)$~D', (string) $request->get_route(), $parts );
		self::$order_id = 1 === $found ? (int) $parts[1] : 0;
		return $response;
	}

	/**
	 * Forget it.
	 *
	 * @param mixed $response Passed on.
	 */
	public static function forget_order( $response ) {
		self::$order_id = 0;
		return $response;
	}

	/** The order of the page, if it is the buyer's and has something to do with the service. */
	private static function order_to_pay() {
		$order = Orders::find( absint( get_query_var( 'order-pay' ) ) );
		$key   = isset( $_GET['key'] ) && is_string( $_GET['key'] ) ? wc_clean( wp_unslash( $_GET['key'] ) ) : ''; // phpcs:ignore WordPress.Security.NonceVerification.Recommended -- compared with the order's.
		return $order && $order->key_is_valid( $key ) && Orders::is_gated( $order ) ? $order : null;
	}

	/**
	 * The text for this buyer after the notice.
	 *
	 * @param string         $text  WooCommerce's.
	 * @param \WC_Order|null $order The order.
	 */
	public static function thank_buyer( $text, $order ) {
		return $order instanceof \WC_Order && $order->has_status( 'on-hold' ) && $order->get_date_paid() && Orders::is_gated( $order ) && Orders::was_cleared( $order )
			? __( 'Your notice is recorded, and your payment has arrived: nothing is missing. The shop goes on with your order.', 'countersign-woocommerce' )
			: $text;
	}

	/** The sentence. */
	public static function show_state(): void {
		$order = self::order_to_pay();
		if ( ! $order || ! $order->needs_payment() ) {
			return;
		}
		// What the shop has taken on itself, the buyer reads as cleared.
		$state = str_replace( 'overridden', 'cleared', Orders::state( $order ) );
		if ( Orders::may_be_paid( $order ) ) {
			if ( 'cleared' === $state ) {
				wc_print_notice( __( 'Your notice is recorded: you can pay now.', 'countersign-woocommerce' ), 'success' );
			}
			return;
		}
		$words  = array(
			'cleared'   => __( 'Your notice is recorded. It is looked at once more before you pay: go on below.', 'countersign-woocommerce' ),
			'undecided' => __( 'Your notice is recorded, and your identity check is not decided yet. You get an e-mail as soon as it is.', 'countersign-woocommerce' ),
			'refused'   => __( 'Your order was not released. You can go through the notice again, or ask the shop.', 'countersign-woocommerce' ),
			'declined'  => __( 'You did not initial the notice. You can go through it after all, or ask the shop.', 'countersign-woocommerce' ),
			'changed'   => __( 'The address or the products were changed after your notice. Please go through it again.', 'countersign-woocommerce' ),
		);
		$open   = __( 'The legal notice of this order is not finished: go on with it below.', 'countersign-woocommerce' );
		$charge = $order->get_date_paid() ? __( 'We have your payment: nothing is charged again.', 'countersign-woocommerce' ) : __( 'Nothing was charged.', 'countersign-woocommerce' );
		wc_print_notice( ( $words[ $state ] ?? $open ) . ' ' . $charge, 'notice' );
	}

	/**
	 * The button, also without scripts.
	 *
	 * @param string $text What it says.
	 */
	public static function button_text( $text ) {
		$order = self::order_to_pay();
		return $order && ! Orders::may_be_paid( $order ) ? ( new Gateway() )->order_button_text : $text;
	}
}
