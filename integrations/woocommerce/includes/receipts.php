<?php
/**
 * The receipts of all orders, for `countersign log monitor --receipts`.
 *
 * @package Countersign
 */

namespace Countersign\WooCommerce;

defined( 'ABSPATH' ) || exit;

/** In each receipt the log promises to have a record: only with it can the shop show that one was left out. */
final class Receipts {
	/**
	 * Write those that are new into a directory, one file each. For a command line: see the guide.
	 *
	 * @param string $directory Is made if it does not exist; outside of what browsers are shown.
	 * @return int How many were new.
	 * @throws \RuntimeException If they cannot be written.
	 */
	public static function collect( string $directory ): int {
		$directory = untrailingslashit( $directory );
		if ( ! wp_mkdir_p( $directory ) ) {
			throw new \RuntimeException( 'The directory cannot be made.' );
		}
		$ids = wc_get_orders(
			array( 'limit' => -1, 'return' => 'ids', 'type' => 'shop_order' )
		);
		$new = 0;
		foreach ( $ids as $id ) {
			$order = wc_get_order( $id );
			foreach ( $order instanceof \WC_Order ? Orders::stored( $order )['receipts'] : array() as $ack => $receipt ) {
				$new += self::write( $directory, (string) $ack, (string) $receipt );
			}
		}
		return $new;
	}

	/**
	 * Write one, unless it is there. The monitor reads each file of the directory, so the unfinished one is next to it.
	 *
	 * @param string $directory The directory.
	 * @param string $ack       The acknowledgment.
	 * @param string $receipt   Its receipt.
	 * @return int 1 if it is new.
	 * @throws \RuntimeException If it cannot be written.
	 */
	private static function write( string $directory, string $ack, string $receipt ): int {
		$file = "{$directory}/{$ack}.txt";
		if ( 1 !== preg_match( '/^ack_[0-9a-z]+$/D', $ack ) || file_exists( $file ) ) {
			return 0;
		}
		$unfinished = dirname( $directory ) . '/.' . basename( $directory ) . ".{$ack}.txt";
		// phpcs:ignore WordPress.WP.AlternativeFunctions -- a file of the shop's own, on the command line.
		if ( strlen( $receipt ) !== file_put_contents( $unfinished, $receipt ) || ! rename( $unfinished, $file ) ) {
			throw new \RuntimeException( 'A receipt cannot be written.' );
		}
		return 1;
	}
}
