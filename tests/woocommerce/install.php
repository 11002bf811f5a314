<?php
/**
 * Only in tests: installs WordPress and WooCommerce, a step in each process, as an administrator would.
 */

$step = $argv[1];
if ( 'wordpress' === $step ) {
	define( 'WP_INSTALLING', true );
}
$_SERVER['HTTP_HOST'] = '127.0.0.1';
require ABSPATH . 'wp-load.php';
require_once ABSPATH . 'wp-admin/includes/upgrade.php';
require_once ABSPATH . 'wp-admin/includes/plugin.php';

if ( 'wordpress' === $step ) {
	wp_install( 'Shop', 'admin', 'admin@example.com', true, '', 'the admin', 'en_US' );
	switch_theme( $argv[2] );
}

if ( 'woocommerce' === $step ) {
	$error = activate_plugin( 'woocommerce/woocommerce.php' );
	if ( is_wp_error( $error ) ) {
		fwrite( STDERR, $error->get_error_message() );
		exit( 1 );
	}
}

if ( 'settings' === $step ) {
	WC_Install::install();
	WC_Install::create_pages();
	$classic = wp_insert_post(
		array(
			'post_type'    => 'page',
			'post_status'  => 'publish',
			'post_title'   => 'Classic checkout',
			'post_content' => '[woocommerce_checkout]',
		)
	);
	$settings = array(
		'classic_page'                       => $classic,
		'blocks_page'                        => wc_get_page_id( 'checkout' ),
		'woocommerce_coming_soon'            => 'no',
		'woocommerce_default_country'        => 'US:CA',
		'woocommerce_currency'               => 'USD',
		'woocommerce_enable_guest_checkout'  => 'yes',
		'woocommerce_enable_signup_and_login_from_checkout' => 'no',
		'woocommerce_allow_tracking'         => 'no',
		'woocommerce_onboarding_profile'     => array( 'skipped' => true ),
		'woocommerce_task_list_hidden'       => 'yes',
		'woocommerce_show_marketplace_suggestions' => 'no',
		'woocommerce_cod_settings'           => array( 'enabled' => 'yes', 'title' => 'Cash on delivery' ),
		'woocommerce_bacs_settings'          => array( 'enabled' => 'yes', 'title' => 'Bank transfer' ),
		'users_can_register'                 => 0,
	);
	foreach ( $settings as $name => $value ) {
		update_option( $name, $value );
	}
	if ( version_compare( WC()->version, '8.2', '>=' ) ) {
		$tables = wc_get_container()->get( \Automattic\WooCommerce\Internal\DataStores\Orders\DataSynchronizer::class );
		if ( ! $tables->check_orders_table_exists() ) {
			$tables->create_database_tables();
		}
		update_option( 'woocommerce_custom_orders_table_enabled', 'yes' );
	}
	// A copy of it is where only this process looks.
	delete_option( 'woocommerce_placeholder_image' );
	// Everywhere, and at no price: a parcel costs nothing.
	( new WC_Shipping_Zone( 0 ) )->add_shipping_method( 'free_shipping' );
	// Counted before, in the same second: it would stay none.
	delete_transient( 'wc_shipping_method_count' );
	delete_transient( 'wc_shipping_method_count_legacy' );
	foreach ( array( 'administrator', 'shop_manager', 'customer' ) as $role ) {
		$id = wp_create_user( "a_{$role}", 'p', "{$role}@x.example" );
		get_user_by( 'id', $id )->set_role( $role );
	}
}
echo 'installed';
