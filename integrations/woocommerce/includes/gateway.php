<?php
/**
 * The way to the notice, in the place of a payment.
 *
 * @package Countersign
 */

namespace Countersign\WooCommerce;

defined( 'ABSPATH' ) || exit;

/**
 * A payment gateway that takes no payment: it leads to the hosted page, and the order stays unpaid.
 *
 * See https://developer.woocommerce.com/docs/features/payments/payment-gateway-api/.
 */
final class Gateway extends \WC_Payment_Gateway {
	const ID = 'countersign';

	/** @var string The way in which the order was paid before its buyer was led to the notice. */
	private static $before = '';

	/** @var string Its name. */
	private static $title_before = '';

	/** Shown to the buyer in place of payment methods. */
	public function __construct() {
		$this->id                 = self::ID;
		$this->has_fields         = false;
		$this->title              = __( 'Legal notice first, payment afterwards', 'countersign-woocommerce' );
		$this->description        = __( 'Before you can pay for this order, you read and initial a legal notice, and may have to show who you are. Nothing is charged until then.', 'countersign-woocommerce' );
		$this->order_button_text  = __( 'Continue to the notice', 'countersign-woocommerce' );
		$this->method_title       = 'Countersign';
		$this->method_description = __( 'Takes no payment: it leads the buyers of classed products to the notice first. It is on while the plugin is active.', 'countersign-woocommerce' );
		$this->init_settings();
	}

	/** It is on while the plugin is: what WooCommerce stored of a switch does not count. */
	public function init_settings() {
		$this->settings = array( 'enabled' => 'yes' );
		$this->enabled  = 'yes';
	}

	/**
	 * The same for WooCommerce's REST API, whose answer has what was asked for otherwise.
	 *
	 * @param array   $settings What would be stored.
	 * @param Gateway $gateway  This gateway, or another object of it.
	 */
	public static function stays_on( $settings, $gateway ) {
		$gateway->enabled = 'yes';
		return array( 'enabled' => 'yes' ) + $settings;
	}

	/** Until there is an address and a key, WooCommerce says that something has to be done. */
	public function needs_setup() {
		return ! Settings::is_complete();
	}

	/** For WooCommerce's list, which says so. */
	public function is_test_mode(): bool {
		return Settings::is_test();
	}

	/** Where *Manage* leads. */
	public function get_settings_url(): string {
		return Settings_Page::url();
	}

	/** Where *Manage* leads in WooCommerce before 9. */
	public function admin_options() {
		echo '<h2>Countersign</h2><p>' . esc_html( $this->method_description ) . '</p>';
		echo '<p><a class="button" href="' . esc_url( Settings_Page::url() ) . '">' . esc_html__( 'Settings', 'countersign-woocommerce' ) . '</a></p>';
		$GLOBALS['hide_save_button'] = true; // phpcs:ignore WordPress.WP.GlobalVariablesOverride -- WooCommerce's own: there is nothing to save.
	}

	/** WooCommerce's switch of a gateway: ours has none, and the answer leads to the settings. */
	public static function refuse_switch(): void {
		if ( isset( $_POST['gateway_id'] ) && self::ID === sanitize_key( wp_unslash( $_POST['gateway_id'] ) ) ) { // phpcs:ignore WordPress.Security.NonceVerification.Missing -- nothing is done.
			wp_send_json_error( 'needs_setup' );
		}
	}

	/**
	 * On the page where an order is paid, before WooCommerce notes our gateway on it.
	 *
	 * @param \WC_Order $order The order.
	 */
	public static function remember_payment( $order ): void {
		self::$before       = $order->get_payment_method();
		self::$title_before = $order->get_payment_method_title();
	}

	/** Hide the switch, where WooCommerce shows one for each gateway. */
	public static function hide_switch(): void {
		echo '<style>#countersign .woocommerce-list__item-after,tr[data-gateway_id="countersign"] .wc-payment-gateway-method-toggle-enabled{visibility:hidden}</style>';
	}

	/** Always: which orders need it is chosen in Gate. */
	public function is_available() {
		return true;
	}

	/**
	 * Lead the buyer to the notice, or to the payment if the order is cleared.
	 *
	 * @param int $order_id The order.
	 * @return array As WooCommerce wants it.
	 */
	public function process_payment( $order_id ) {
		$url = '';
		try {
			$order = Orders::locked(
				(int) $order_id,
				static function ( $order ) use ( &$url ) {
					$url = Orders::begin( $order );
				}
			);
		} catch ( Cannot_Sell $refusal ) {
			return self::failure( $refusal->getMessage() );
		} catch ( Service_Error $error ) {
			$error->log( (int) $order_id );
			/* translators: %s: what is wrong */
			wc_get_order( $order_id )->add_order_note( sprintf( __( 'Countersign: the buyer could not be led to the notice: %s.', 'countersign-woocommerce' ), Words::trouble( $error->reason ) ) );
			return self::failure( Gate::sorry() );
		}
		// No payment was made in this way: the order has the way that it was paid in before, or none.
		$order->set_payment_method( self::$before );
		$order->set_payment_method_title( self::$title_before );
		$order->save();
		return array( 'result' => 'success', 'redirect' => '' === $url ? $order->get_checkout_payment_url() : $url );
	}

	/**
	 * What the buyer reads: the checkout shows notices, the block checkout the message.
	 *
	 * @param string $message For the buyer.
	 */
	private static function failure( string $message ): array {
		wc_add_notice( $message, 'error' );
		return array( 'result' => 'failure', 'message' => $message );
	}
}
