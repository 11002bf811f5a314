<?php
/**
 * Plugin Name:       Countersign for WooCommerce
 * Description:       Legal notices and identity checks before an order is paid, and evidence of them.
 * Version:           0.1.0
 * Requires at least: 6.1
 * Requires PHP:      7.4
 * Requires Plugins:  woocommerce
 * WC requires at least: 7.2
 * WC tested up to:   10.0
 * License:           Apache-2.0
 * License URI:       https://www.apache.org/licenses/LICENSE-2.0
 * Text Domain:       countersign-woocommerce
 * Domain Path:       /languages
 *
 * @package Countersign
 */

namespace Countersign\WooCommerce;

defined( 'ABSPATH' ) || exit;

const VERSION = '0.1.0';
const FILE    = __FILE__;

foreach ( array( 'settings', 'client', 'words', 'products', 'need', 'orders', 'state-machine', 'emails', 'receipts', 'gate', 'events', 'health', 'settings-page', 'order-box', 'order-list', 'privacy' ) as $countersign_part ) {
	require_once __DIR__ . "/includes/{$countersign_part}.php";
}
unset( $countersign_part );

// https://developer.woocommerce.com/docs/features/high-performance-order-storage/recipe-book/.
add_action(
	'before_woocommerce_init',
	static function () {
		if ( class_exists( '\Automattic\WooCommerce\Utilities\FeaturesUtil' ) ) {
			\Automattic\WooCommerce\Utilities\FeaturesUtil::declare_compatibility( 'custom_order_tables', __FILE__, true );
			\Automattic\WooCommerce\Utilities\FeaturesUtil::declare_compatibility( 'cart_checkout_blocks', __FILE__, true );
		}
	}
);

add_action(
	'plugins_loaded',
	static function () {
		if ( ! class_exists( 'WooCommerce' ) ) {
			add_action( 'admin_notices', array( Settings_Page::class, 'woocommerce_is_missing' ) );
			return;
		}
		require_once __DIR__ . '/includes/gateway.php';
		Settings_Page::register();
		Products::register();
		Gate::register();
		State_Machine::register();
		Emails::register();
		Events::register();
		Order_Box::register();
		Order_List::register();
		Health::register();
		Privacy::register();
		if ( defined( 'WP_CLI' ) && WP_CLI ) {
			require_once __DIR__ . '/includes/command.php';
			\WP_CLI::add_command( 'countersign', Command::class );
		}
	}
);

add_action(
	'init',
	static function () {
		load_plugin_textdomain( 'countersign-woocommerce', false, dirname( plugin_basename( __FILE__ ) ) . '/languages' );
	},
	0
);

// One Spanish for all countries.
add_filter(
	'load_textdomain_mofile',
	static function ( $file, $domain ) {
		$ours = 'countersign-woocommerce' === $domain && ! is_readable( $file ) && 1 === preg_match( '/-es_[A-Z]{2}\.mo$/D', $file );
		return $ours ? __DIR__ . '/languages/countersign-woocommerce-es_ES.mo' : $file;
	},
	10,
	2
);

register_activation_hook( __FILE__, array( Events::class, 'schedule' ) );
register_deactivation_hook( __FILE__, array( Events::class, 'unschedule' ) );
