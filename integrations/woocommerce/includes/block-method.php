<?php
/**
 * The gateway in the block checkout.
 *
 * @package Countersign
 */

namespace Countersign\WooCommerce;

defined( 'ABSPATH' ) || exit;

/**
 * Scripts and texts for the block checkout.
 *
 * See https://developer.woocommerce.com/docs/block-development/cart-and-checkout-blocks/checkout-payment-methods/payment-method-integration/.
 */
final class Block_Method extends \Automattic\WooCommerce\Blocks\Payments\Integrations\AbstractPaymentMethodType {
	/** @var string That of the gateway. */
	protected $name = Gateway::ID;

	/** Nothing has to be prepared. */
	public function initialize() {}

	/** The script that registers it. */
	public function get_payment_method_script_handles() {
		$script = plugins_url( 'assets/checkout.js', __DIR__ );
		wp_register_script( 'countersign-checkout', $script, array( 'wc-blocks-registry', 'wc-settings', 'wp-element' ), VERSION, true );
		return array( 'countersign-checkout' );
	}

	/** The words, which the script finds as `countersign_data`. */
	public function get_payment_method_data() {
		$gateway = new Gateway();
		return array( 'title' => $gateway->title, 'description' => $gateway->description, 'button' => $gateway->order_button_text );
	}
}
