<?php
/**
 * Remove the secrets and what is only for this plugin. Classes of products and what is known of orders stay:
 * after another installation the same products are gated again, and the orders still name their evidence.
 *
 * @package Countersign
 */

defined( 'WP_UNINSTALL_PLUGIN' ) || exit;

delete_option( 'countersign_settings' );
delete_option( 'countersign_events_after' );
wp_clear_scheduled_hook( 'countersign_catch_up' );
