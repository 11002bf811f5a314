<?php
/**
 * Session, cart, gateways, checkout, and the page where an order is paid.
 */

defined( 'ABSPATH' ) || exit;

/** includes/class-wc-session-handler.php: one for each browser. */
final class WC_Session_Handler {
	const COOKIE = 'wp_woocommerce_session_stub';
	private $id;
	private $values;

	public function __construct() {
		$this->id = sanitize_key( $_COOKIE[ self::COOKIE ] ?? '' );
		if ( '' === $this->id ) {
			$this->id = strtolower( wp_generate_password( 24, false ) );
			headers_sent() || setcookie( self::COOKIE, $this->id, 0, '/' );
		}
		$this->values = get_option( "stub_session_{$this->id}", array() );
	}

	public function get( $name, $default = null ) {
		return $this->values[ $name ] ?? $default;
	}

	public function set( $name, $value ) {
		$this->values[ $name ] = $value;
		update_option( "stub_session_{$this->id}", $this->values, false );
	}
}

/** includes/class-wc-cart.php: `product_id` and `data` of each item. */
final class WC_Cart {
	public function get_cart() {
		return array_map( static function ( $id ) { return array( 'product_id' => $id, 'data' => wc_get_product( $id ) ); }, (array) WC()->session->get( 'cart', array() ) );
	}

	public function is_empty() {
		return array() === $this->get_cart();
	}

	public function get_cart_hash() {
		return md5( wp_json_encode( WC()->session->get( 'cart', array() ) ) );
	}

	public function empty_cart() {
		WC()->session->set( 'cart', array() );
	}

	public function get_total() {
		return array_sum( array_map( static function ( $item ) { return $item['data'] ? $item['data']->get_price() : 0; }, $this->get_cart() ) );
	}

	public function needs_payment() {
		return apply_filters( 'woocommerce_cart_needs_payment', 0 < $this->get_total(), $this );
	}
}

/** includes/abstracts/abstract-wc-payment-gateway.php */
abstract class WC_Payment_Gateway {
	public $id;
	public $enabled = 'yes';
	public $title;
	public $description;
	public $order_button_text;
	public $has_fields;
	public $method_title;
	public $method_description;
	public $supports = array( 'products' );

	public function is_available() {
		return 'yes' === $this->enabled;
	}

	public function validate_fields() {
		return true;
	}

	public function process_payment( $order_id ) {
		return array();
	}

	public function get_title() {
		return apply_filters( 'woocommerce_gateway_title', $this->title, $this->id );
	}

	public function get_description() {
		return apply_filters( 'woocommerce_gateway_description', wp_kses_post( $this->description ), $this->id );
	}
}

/** A gateway that captures at once. */
final class Stub_Card extends WC_Payment_Gateway {
	public $id    = 'card';
	public $title = 'Card';

	public function process_payment( $order_id ) {
		$order = wc_get_order( $order_id );
		$order->update_meta_data( '_stub_captured', 1 + (int) $order->get_meta( '_stub_captured' ) );
		$order->save();
		$order->payment_complete( 'tx' );
		return array( 'result' => 'success', 'redirect' => $order->get_checkout_order_received_url() );
	}
}

/** includes/class-wc-payment-gateways.php */
final class WC_Payment_Gateways {
	public function get_available_payment_gateways() {
		$found = array();
		foreach ( apply_filters( 'woocommerce_payment_gateways', array( 'Stub_Card' ) ) as $class ) {
			$gateway = is_string( $class ) ? new $class() : $class;
			if ( $gateway instanceof WC_Payment_Gateway && $gateway->is_available() ) {
				$found[ $gateway->id ] = $gateway;
			}
		}
		return array_filter( (array) apply_filters( 'woocommerce_available_payment_gateways', $found ) );
	}
}

/** includes/wc-notice-functions.php: kept in the session until they are shown, which escapes them with wp_kses. */
function wc_add_notice( $message, $type = 'success', $data = array() ) {
	WC()->session->set( 'notices', array_merge( WC()->session->get( 'notices', array() ), array( array( $type, $message ) ) ) );
}

function wc_notice_count( $type ) {
	return count( array_filter( WC()->session->get( 'notices', array() ), static function ( $one ) use ( $type ) { return $one[0] === $type; } ) );
}

function wc_get_checkout_url() {
	return home_url( '/?stub_page=checkout' );
}

add_filter( 'query_vars', static function ( $names ) { return array_merge( $names, array( 'order-pay', 'order-received', 'stub_page' ) ); } );

/** The page of the stand-in: its form, and what hooks have to show. */
function stub_page( $title, $body ) {
	nocache_headers();
	header( 'Content-Type: text/html; charset=utf-8' );
	echo '<!doctype html><html><head><title>Shop</title></head><body><h1>' . esc_html( $title ) . '</h1>';
	foreach ( WC()->session->get( 'notices', array() ) as $notice ) {
		echo '<p class="notice">' . wp_kses_post( $notice[1] ) . '</p>';
	}
	WC()->session->set( 'notices', array() );
	echo $body . '</body></html>';
	exit;
}

function stub_gateways() {
	$html = '';
	foreach ( WC()->payment_gateways()->get_available_payment_gateways() as $gateway ) {
		$html .= '<p><label><input type="radio" name="payment_method" value="' . esc_attr( $gateway->id ) . '"> ' . esc_html( $gateway->get_title() ) . '</label> ' . $gateway->get_description() . ' <b>' . esc_html( (string) $gateway->order_button_text ) . '</b></p>';
	}
	return $html;
}

// includes/class-wc-form-handler.php: add_to_cart_action() and checkout_action() in `wp_loaded`, priority 20.
add_action(
	'wp_loaded',
	static function () {
		if ( isset( $_GET['add-to-cart'] ) ) {
			WC()->session->set( 'cart', array_merge( WC()->session->get( 'cart', array() ), array( absint( $_GET['add-to-cart'] ) ) ) );
		}
		if ( isset( $_POST['woocommerce_checkout_place_order'] ) ) {
			stub_process_checkout();
		}
	},
	20
);

/** includes/class-wc-checkout.php: process_checkout(), create_order(), process_order_payment(). */
function stub_process_checkout() {
	$posted = array_map( 'sanitize_text_field', wp_unslash( $_POST ) );
	try {
		if ( ! wp_verify_nonce( $posted['woocommerce-process-checkout-nonce'] ?? '', 'woocommerce-process_checkout' ) ) {
			throw new Exception( 'We were unable to process your order, please try again.' );
		}
		do_action( 'woocommerce_before_checkout_process' );
		if ( WC()->cart->is_empty() ) {
			throw new Exception( 'Your session has expired.' );
		}
		do_action( 'woocommerce_checkout_process' );
		$available = WC()->payment_gateways()->get_available_payment_gateways();
		// validate_checkout().
		$errors = new WP_Error();
		if ( WC()->cart->needs_payment() && ! isset( $available[ $posted['payment_method'] ?? '' ] ) ) {
			$errors->add( 'payment', 'Invalid payment method.' );
		}
		do_action( 'woocommerce_after_checkout_validation', $posted, $errors );
		foreach ( $errors->get_error_messages() as $message ) {
			wc_add_notice( $message, 'error' );
		}
		if ( 0 === wc_notice_count( 'error' ) ) {
			// create_order(): one that waits for its payment is used again, with what is sent now.
			$waiting = wc_get_order( absint( WC()->session->get( 'order_awaiting_payment' ) ) );
			$resumed = $waiting && hash_equals( (string) $waiting->get_cart_hash(), WC()->cart->get_cart_hash() ) && $waiting->has_status( array( 'pending', 'failed' ) );
			$order   = $resumed ? $waiting : new WC_Order();
			foreach ( array( 'shipping_country', 'shipping_state', 'shipping_postcode', 'shipping_first_name', 'billing_email' ) as $name ) {
				$order->{"set_{$name}"}( $posted[ $name ] ?? '' );
			}
			$order->set_items( array_column( WC()->cart->get_cart(), 'product_id' ) );
			$order->set_cart_hash( WC()->cart->get_cart_hash() );
			$order->set_customer_id( get_current_user_id() );
			$order->set_payment_method( $posted['payment_method'] ?? '' );
			$order->save();
			do_action( 'woocommerce_checkout_order_processed', $order->get_id(), $posted, $order );
			if ( apply_filters( 'woocommerce_cart_needs_payment', $order->needs_payment(), WC()->cart ) ) {
				$available = WC()->payment_gateways()->get_available_payment_gateways();
				if ( isset( $available[ $posted['payment_method'] ] ) ) {
					WC()->session->set( 'order_awaiting_payment', $order->get_id() );
					$result = $available[ $posted['payment_method'] ]->process_payment( $order->get_id() );
					if ( 'success' === ( $result['result'] ?? '' ) ) {
						wp_redirect( $result['redirect'] );
						exit;
					}
				}
			} else {
				$order = wc_get_order( $order->get_id() );
				$order->payment_complete();
				WC()->cart->empty_cart();
				wp_safe_redirect( $order->get_checkout_order_received_url() );
				exit;
			}
		}
	} catch ( Exception $error ) {
		wc_add_notice( $error->getMessage(), 'error' );
	}
}

// includes/class-wc-form-handler.php: pay_action() in `wp`, priority 20.
add_action(
	'wp',
	static function () {
		if ( ! isset( $_POST['woocommerce_pay'], $_GET['key'] ) || ! wp_verify_nonce( $_POST['woocommerce-pay-nonce'] ?? '', 'woocommerce-pay' ) ) {
			return;
		}
		$order = wc_get_order( absint( get_query_var( 'order-pay' ) ) );
		if ( ! $order || ! hash_equals( $order->get_order_key(), wp_unslash( $_GET['key'] ) ) || ! $order->needs_payment() ) {
			return;
		}
		do_action( 'woocommerce_before_pay_action', $order );
		try {
			$available = WC()->payment_gateways()->get_available_payment_gateways();
			$gateway   = $available[ sanitize_key( $_POST['payment_method'] ?? '' ) ] ?? null;
			if ( ! $gateway ) {
				throw new Exception( 'Invalid payment method.' );
			}
			$order->set_payment_method( $gateway->id );
			$order->save();
			$gateway->validate_fields();
			if ( 0 === wc_notice_count( 'error' ) ) {
				$result = $gateway->process_payment( $order->get_id() );
				if ( 'success' === ( $result['result'] ?? '' ) ) {
					wp_redirect( $result['redirect'] );
					exit;
				}
			}
		} catch ( Exception $error ) {
			wc_add_notice( $error->getMessage(), 'error' );
		}
		do_action( 'woocommerce_after_pay_action', $order );
	},
	20
);

// includes/shortcodes/class-wc-shortcode-checkout.php: order_pay(), order_received(), checkout().
add_action(
	'template_redirect',
	static function () {
		if ( 'checkout' !== get_query_var( 'stub_page' ) ) {
			return;
		}
		$key = sanitize_text_field( wp_unslash( $_GET['key'] ?? '' ) );
		if ( get_query_var( 'order-pay' ) ) {
			$order = wc_get_order( absint( get_query_var( 'order-pay' ) ) );
			if ( ! $order || ! hash_equals( $order->get_order_key(), $key ) ) {
				stub_page( 'Pay', 'Sorry, this order is invalid and cannot be paid for.' );
			}
			if ( ! $order->needs_payment() ) {
				stub_page( 'Pay', 'This order cannot be paid for: ' . esc_html( wc_get_order_status_name( $order->get_status() ) ) );
			}
			stub_page( 'Pay', '<form method="post" action="' . esc_url( add_query_arg( array() ) ) . '">' . stub_gateways() . wp_nonce_field( 'woocommerce-pay', 'woocommerce-pay-nonce', true, false ) . '<input type="hidden" name="woocommerce_pay" value="1"></form>' );
		}
		if ( get_query_var( 'order-received' ) ) {
			$order = wc_get_order( absint( get_query_var( 'order-received' ) ) );
			stub_page( 'Thank you', $order && $order->key_is_valid( $key ) ? esc_html( $order->get_status() ) : '' );
		}
		stub_page( 'Checkout', '<form method="post" action="' . esc_url( wc_get_checkout_url() ) . '">' . ( WC()->cart->needs_payment() ? stub_gateways() : '' ) . wp_nonce_field( 'woocommerce-process_checkout', 'woocommerce-process-checkout-nonce', true, false ) . '<input type="hidden" name="woocommerce_checkout_place_order" value="1"></form>' );
	}
);

// src/StoreApi/Routes/V1/Checkout.php and StoreApi/Legacy.php: what the block checkout sends when an order is placed.
add_action(
	'rest_api_init',
	static function () {
		register_rest_route(
			'wc/store/v1',
			'/checkout',
			array(
				'methods'             => 'POST',
				'permission_callback' => '__return_true',
				'callback'            => static function ( $request ) {
					$order = new WC_Order();
					foreach ( (array) $request['shipping_address'] as $name => $value ) {
						$order->{"set_shipping_{$name}"}( $value );
					}
					$order->set_items( array_column( WC()->cart->get_cart(), 'product_id' ) );
					$order->save();
					$available = WC()->payment_gateways()->get_available_payment_gateways();
					$method    = wc_clean( $request['payment_method'] );
					if ( ! isset( $available[ $method ] ) ) {
						return new WP_Error( 'woocommerce_rest_checkout_payment_method_disabled', 'Not available for this order.', array( 'status' => 400 ) );
					}
					$order->set_payment_method( $method );
					$order->save();
					try {
						do_action( 'woocommerce_store_api_checkout_order_processed', $order );
					} catch ( Exception $error ) {
						return new WP_Error( 'stub', $error->getMessage(), array( 'status' => 400 ) );
					}
					$result = $available[ $method ]->process_payment( $order->get_id() );
					if ( 'failure' === $result['result'] ) {
						return new WP_Error( 'woocommerce_rest_payment_error', wp_strip_all_tags( $result['message'] ), array( 'status' => 400 ) );
					}
					return array( 'payment_result' => array( 'redirect_url' => $result['redirect'] ) );
				},
			)
		);
	}
);

// src/StoreApi/Routes/V1/CheckoutOrder.php: the buyer pays an order that exists, and may send other addresses with it.
add_action(
	'rest_api_init',
	static function () {
		register_rest_route(
			'wc/store/v1',
			'/checkout/(?P<id>[\d]+)',
			array(
				'methods'             => 'POST',
				'permission_callback' => static function ( $request ) {
					$order = wc_get_order( absint( $request['id'] ) );
					return $order && $order->key_is_valid( (string) $request['key'] );
				},
				'callback'            => static function ( $request ) {
					$order = wc_get_order( absint( $request['id'] ) );
					if ( ! $order->needs_payment() ) {
						return new WP_Error( 'invalid_order_update_status', 'This order cannot be paid for.', array( 'status' => 400 ) );
					}
					foreach ( (array) $request['shipping_address'] as $name => $value ) {
						$order->{"set_shipping_{$name}"}( $value );
					}
					$order->save();
					$available = WC()->payment_gateways()->get_available_payment_gateways();
					$method    = wc_clean( $request['payment_method'] );
					if ( ! isset( $available[ $method ] ) ) {
						return new WP_Error( 'woocommerce_rest_checkout_payment_method_disabled', 'The payment gateway is not available.', array( 'status' => 400 ) );
					}
					$order->set_payment_method( $method );
					$order->save();
					try {
						do_action( 'woocommerce_store_api_checkout_order_processed', $order );
					} catch ( Exception $error ) {
						return new WP_Error( 'stub', $error->getMessage(), array( 'status' => 400 ) );
					}
					return $available[ $method ]->process_payment( $order->get_id() );
				},
			)
		);
	}
);
