<?php
/**
 * Plugin Name: WooCommerce (a stand-in for tests)
 * Version: 0.0.0
 *
 * No registry has WooCommerce, so this takes its place: the functions and classes that the plugin uses, and the hooks that
 * it relies on, fired at the places, in the order and with the arguments that WooCommerce's own source and code reference
 * (https://woocommerce.github.io/code-reference/) show. What each part stands for is named with it, as a file of
 * `plugins/woocommerce` in https://github.com/woocommerce/woocommerce. Storage, prices and pages are the stand-in's own.
 */

defined( 'ABSPATH' ) || exit;

require __DIR__ . '/orders.php';
require __DIR__ . '/shop.php';
require __DIR__ . '/admin.php';
require __DIR__ . '/blocks.php';

/** includes/class-woocommerce.php: what WC() returns. */
final class WooCommerce {
	public $cart = null;
	public $session = null;
	public $payment_gateways_object = null;

	public function payment_gateways() {
		$this->payment_gateways_object = $this->payment_gateways_object ?? new WC_Payment_Gateways();
		return $this->payment_gateways_object;
	}
}

function WC() { // phpcs:ignore
	static $one = null;
	$one = $one ?? new WooCommerce();
	return $one;
}

// WooCommerce::init_hooks(): `before_woocommerce_init` is fired in `init`, priority 0.
add_action(
	'init',
	static function () {
		do_action( 'before_woocommerce_init' );
		// includes/class-wc-post-types.php.
		register_post_type( 'shop_order', array( 'show_ui' => true, 'public' => false, 'capability_type' => 'shop_order', 'map_meta_cap' => true, 'supports' => array( 'title', 'custom-fields' ), 'labels' => array( 'name' => 'Orders' ) ) );
		register_post_type( 'product', array( 'public' => true, 'capability_type' => 'product', 'map_meta_cap' => true, 'supports' => array( 'title' ), 'labels' => array( 'name' => 'Products' ) ) );
		register_taxonomy( 'product_cat', 'product', array( 'hierarchical' => true, 'capabilities' => array( 'manage_terms' => 'manage_product_terms', 'edit_terms' => 'edit_product_terms', 'delete_terms' => 'delete_product_terms', 'assign_terms' => 'assign_product_terms' ) ) );
		foreach ( wc_get_order_statuses() as $status => $label ) {
			register_post_status( $status, array( 'label' => $label, 'public' => false, 'show_in_admin_all_list' => true ) );
		}
		// WooCommerce::initialize_session(), initialize_cart(): on the front end.
		if ( ! is_admin() ) {
			WC()->session = new WC_Session_Handler();
			WC()->cart    = new WC_Cart();
		}
	},
	0
);

// includes/class-wc-install.php: roles and capabilities.
register_activation_hook(
	__FILE__,
	static function () {
		add_role( 'customer', 'Customer', array( 'read' => true ) );
		add_role( 'shop_manager', 'Shop manager', array( 'read' => true ) );
		foreach ( array( 'administrator', 'shop_manager' ) as $name ) {
			$role = get_role( $name );
			$role->add_cap( 'manage_woocommerce' );
			foreach ( array( 'product', 'shop_order' ) as $type ) {
				foreach ( array( "edit_{$type}", "read_{$type}", "delete_{$type}", "edit_{$type}s", "edit_others_{$type}s", "publish_{$type}s", "read_private_{$type}s", "edit_private_{$type}s", "edit_published_{$type}s", "manage_{$type}_terms", "edit_{$type}_terms", "delete_{$type}_terms", "assign_{$type}_terms" ) as $cap ) {
					$role->add_cap( $cap );
				}
			}
		}
	}
);
