<?php
/**
 * Remove the secrets and what is only for this plugin. Classes of products and what is known of orders stay:
 * after another installation the same products are gated again, and the orders still name their evidence.
 *
 * @package Countersign
 */

defined( 'WP_UNINSTALL_PLUGIN' ) || exit;

foreach ( array( 'settings', 'events_after', 'health' ) as $countersign_name ) {
	delete_option( "countersign_{$countersign_name}" );
}
wp_unschedule_hook( 'countersign_catch_up' );
wp_unschedule_hook( 'countersign_pay_now' );
