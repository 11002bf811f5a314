<?php
/**
 * Plugin Name:       Countersign for WooCommerce
 * Description:       Legal notices and identity checks before an order is paid, and evidence of them.
 * Version:           0.1.0
 * Requires at least: 6.1
 * Requires PHP:      7.4
 * Requires Plugins:  woocommerce
 * WC requires at least: 7.2
 * License:           Apache-2.0
 * License URI:       https://www.apache.org/licenses/LICENSE-2.0
 * Text Domain:       countersign-woocommerce
 *
 * @package Countersign
 */

namespace Countersign\WooCommerce;

defined( 'ABSPATH' ) || exit;

const VERSION = '0.1.0';

foreach ( array( 'settings', 'client', 'products', 'items', 'residence', 'orders', 'receipts', 'gate', 'store-api', 'events', 'settings-page', 'order-box' ) as $countersign_part ) {
	require_once __DIR__ . "/includes/{$countersign_part}.php";
}
unset( $countersign_part );

// https://developer.woocommerce.com/docs/features/high-performance-order-storage/recipe-book/.
add_action(
	'before_woocommerce_init',
	static function () {
		if ( class_exists( '\Automattic\WooCommerce\Utilities\FeaturesUtil' ) ) {
			\Automattic\WooCommerce\Utilities\FeaturesUtil::declare_compatibility( 'custom_order_tables', __FILE__, true );
		}
	}
);

add_action(
	'plugins_loaded',
	static function () {
		Settings_Page::register();
		if ( ! class_exists( 'WooCommerce' ) ) {
			add_action( 'admin_notices', array( Settings_Page::class, 'woocommerce_is_missing' ) );
			return;
		}
		require_once __DIR__ . '/includes/gateway.php';
		Products::register();
		Items::register();
		Gate::register();
		Store_Api::register();
		Events::register();
		Order_Box::register();
	}
);

register_activation_hook( __FILE__, array( Events::class, 'schedule' ) );
register_deactivation_hook( __FILE__, array( Events::class, 'unschedule' ) );
