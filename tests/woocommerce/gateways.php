<?php
/**
 * Only in tests: WooCommerce's own gateways, which note on the order that they were asked to take its payment.
 */

class Counted_COD extends WC_Gateway_COD {
	public function process_payment( $order_id ) {
		$order = wc_get_order( $order_id );
		$order->update_meta_data( '_tests_taken', (int) $order->get_meta( '_tests_taken' ) + 1 );
		$order->save();
		return parent::process_payment( $order_id );
	}
}

class Counted_BACS extends WC_Gateway_BACS {
	public function process_payment( $order_id ) {
		$order = wc_get_order( $order_id );
		$order->update_meta_data( '_tests_taken', (int) $order->get_meta( '_tests_taken' ) + 1 );
		$order->save();
		return parent::process_payment( $order_id );
	}
}
