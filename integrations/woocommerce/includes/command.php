<?php
/**
 * Commands for WP-CLI.
 *
 * @package Countersign
 */

namespace Countersign\WooCommerce;

defined( 'ABSPATH' ) || exit;

/** Check the set-up, and look after orders that wait for a decision. */
final class Command {
	/**
	 * Show what is missing in this shop. Fails if something is.
	 *
	 * @param array $arguments None.
	 */
	public function check( $arguments ): void {
		$checks = Health::checks();
		foreach ( $checks as $one ) {
			\WP_CLI::line( "{$one['state']}\t{$one['label']}: {$one['words']}" );
		}
		if ( Health::TODO === Health::worst( $checks ) ) {
			\WP_CLI::error( __( 'Something is missing.', 'countersign-woocommerce' ) );
		}
	}

	/**
	 * List the orders of a group: waiting, refused, cleared or overridden. One a line: number and state.
	 *
	 * ## OPTIONS
	 *
	 * <group>
	 * : waiting, refused, cleared or overridden.
	 *
	 * [--format=<format>]
	 * : json for programs.
	 *
	 * @param array $arguments The group.
	 * @param array $options   The format.
	 */
	public function orders( $arguments, $options = array() ): void {
		if ( ! isset( Order_List::GROUPS[ $arguments[0] ] ) ) {
			\WP_CLI::error( __( 'There are waiting, refused, cleared and overridden orders.', 'countersign-woocommerce' ) );
		}
		$found = Order_List::find( (string) $arguments[0] );
		if ( 'json' === ( $options['format'] ?? '' ) ) {
			\WP_CLI::line( (string) wp_json_encode( (object) $found ) );
			return;
		}
		foreach ( $found as $id => $state ) {
			\WP_CLI::line( "{$id}\t{$state}" );
		}
	}

	/**
	 * Ask the service about orders again. Fails if one could not be asked about.
	 *
	 * ## OPTIONS
	 *
	 * <id>...
	 * : Orders.
	 *
	 * @param array $arguments Ids.
	 */
	public function ask( $arguments ): void {
		$failed = 0;
		foreach ( $arguments as $id ) {
			try {
				\WP_CLI::line( "{$id}\t" . Orders::state( Orders::locked( (int) $id, array( Orders::class, 'ask_again' ) ) ) );
			} catch ( Service_Error $error ) {
				\WP_CLI::warning( "{$id}: " . Words::trouble( $error->reason ) );
				++$failed;
			}
		}
		if ( $failed > 0 ) {
			\WP_CLI::error( __( 'Not all orders could be asked about.', 'countersign-woocommerce' ) );
		}
	}

	/**
	 * Read the events that no webhook brought, as WordPress does once an hour.
	 *
	 * @subcommand catch-up
	 * @param array $arguments None.
	 */
	public function catch_up( $arguments ): void {
		do_action( Events::HOOK );
	}

	/**
	 * Say that this shop has moved to another address: the orders that were begun at the one before are its own. Not on a copy of a shop.
	 *
	 * @param array $arguments None.
	 */
	public function moved( $arguments ): void {
		Settings::has_moved();
	}

	/**
	 * Write the receipts that are new into a directory, for `countersign log monitor --receipts`.
	 *
	 * ## OPTIONS
	 *
	 * <directory>
	 * : Outside of what browsers are shown.
	 *
	 * @param array $arguments The directory.
	 */
	public function receipts( $arguments ): void {
		/* translators: %d: a number */
		\WP_CLI::line( sprintf( __( '%d receipts were new.', 'countersign-woocommerce' ), Receipts::collect( (string) $arguments[0] ) ) );
	}
}
