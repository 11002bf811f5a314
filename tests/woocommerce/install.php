<?php
/**
 * Only in tests: makes the tables of WordPress, and activates the plugins.
 */

define( 'WP_INSTALLING', true );
$_SERVER['HTTP_HOST'] = getenv( 'SHOP_HOST' );
require ABSPATH . 'wp-load.php';
require_once ABSPATH . 'wp-admin/includes/upgrade.php';
require_once ABSPATH . 'wp-admin/includes/plugin.php';
add_filter( 'pre_http_request', static function () {
	return new WP_Error( 'http_request_failed', 'not in tests' );
}, 1 );
wp_install( 'Shop', 'admin', 'admin@example.com', true, '', 'the admin', 'en_US' );
foreach ( array( 'woocommerce/woocommerce.php', 'countersign-woocommerce/countersign-woocommerce.php' ) as $plugin ) {
	$error = activate_plugin( $plugin );
	if ( is_wp_error( $error ) ) {
		fwrite( STDERR, $error->get_error_message() );
		exit( 1 );
	}
}
echo 'installed';
