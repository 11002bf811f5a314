<?php
/**
 * History of an order: its notes, WooCommerce's log, and e-mails.
 *
 * @package Countersign
 */

namespace Countersign\WooCommerce;

defined( 'ABSPATH' ) || exit;

/**
 * It is written when the order has been saved: what was not stored has not happened.
 */
final class History {

	/**
	 * The state of an order when it was last saved, for the filter of the list of orders.
	 */
	const STATE = '_countersign_state';

	/**
	 * What orders were before their changes that are not saved yet, by id.
	 *
	 * @var array
	 */
	private static $before = array();

	/**
	 * Add the hooks.
	 */
	public static function register(): void {
		add_action( 'countersign_order_changed', array( self::class, 'remember' ), 10, 2 );
		// After that of Gate, which may ask the service.
		add_action( 'woocommerce_before_order_object_save', array( self::class, 'keep_state' ), PHP_INT_MAX );
		add_action( 'woocommerce_after_order_object_save', array( self::class, 'write' ) );
	}

	/**
	 * Remember what an order was before its first change.
	 *
	 * @param \WC_Order $order  The order.
	 * @param array     $before The `state` and the `session` that it had.
	 */
	public static function remember( $order, array $before ): void {
		self::$before += array( $order->get_id() => $before );
	}

	/**
	 * Keep the state with the order, whoever changes it: the address may have been changed.
	 *
	 * @param \WC_Order $order The order, before it is saved.
	 */
	public static function keep_state( $order ): void {
		if ( 'shop_order' !== $order->get_type() ) {
			return;
		}
		$state = Orders::is_gated( $order ) ? Orders::state( $order ) : '';
		if ( (string) $order->get_meta( self::STATE ) !== $state ) {
			$order->update_meta_data( self::STATE, $state );
		}
	}

	/**
	 * Write down what has changed.
	 *
	 * @param \WC_Order $order The order, which was saved.
	 */
	public static function write( $order ): void {
		$before = self::$before[ $order->get_id() ] ?? null;
		if ( null === $before ) {
			return;
		}
		unset( self::$before[ $order->get_id() ] );
		$data  = Orders::data( $order );
		$state = Orders::state( $order );
		if ( $before['state'] === $state && $before['session'] === $data['session'] ) {
			return;
		}
		$ids = array_filter( array( $data['session'], $data['ack'], $data['clearance'] ) );
		wc_get_logger()->info(
			"Order {$order->get_id()}: {$before['state']} -> {$state}; " . implode( ', ', array_merge( $ids, $data['reasons'] ) ),
			array( 'source' => 'countersign' )
		);
		$note = self::note( $state, $data );
		if ( '' !== $note ) {
			if ( 'cleared' === $state && $order->has_status( 'on-hold' ) ) {
				$note .= ' ' . __( 'It is on hold: if it was paid, set it to processing.', 'countersign-woocommerce' );
			}
			$order->add_order_note( 'Countersign: ' . $note );
		}
		/**
		 * Fires when the state of an order has changed and is stored.
		 *
		 * @param \WC_Order $order  The order.
		 * @param string    $state  What it is now: see Orders::state().
		 * @param string    $before What it was.
		 */
		do_action( 'countersign_order_state', $order, $state, $before['state'] );
	}

	/**
	 * The texts of the order's notes.
	 *
	 * @param string $state What it is now.
	 * @param array  $data  What is known of it.
	 */
	private static function note( string $state, array $data ): string {
		switch ( $state ) {
			case 'open':
				/* translators: %s: an id */
				return sprintf( __( 'the buyer was led to the notice (%s).', 'countersign-woocommerce' ), $data['session'] );
			case 'undecided':
				/* translators: %s: an id */
				return sprintf( __( 'the buyer initialed the notice (%s). The decision is not made yet.', 'countersign-woocommerce' ), $data['ack'] );
			case 'cleared':
				/* translators: 1: an id, 2: an id */
				return sprintf( __( 'cleared. The notice was initialed (%1$s), and the order may be paid and shipped (%2$s).', 'countersign-woocommerce' ), $data['ack'], $data['clearance'] );
			case 'not_needed':
				return __( 'this order needs no notice.', 'countersign-woocommerce' );
			case 'refused':
				/* translators: %s: reasons */
				return sprintf( __( 'refused: %s. Do not ship.', 'countersign-woocommerce' ), Words::reasons( $data['reasons'] ) );
			case 'declined':
				return __( 'the buyer declined to initial the notice.', 'countersign-woocommerce' );
			case 'expired':
				return __( 'the link to the notice expired before the buyer was finished.', 'countersign-woocommerce' );
			case 'cancelled':
				return __( 'the link to the notice was cancelled.', 'countersign-woocommerce' );
		}
		return '';
	}
}
