<?php
/**
 * The state machine of an order: what the shop wants of it, and what the service says of it, meet here.
 *
 * @package Countersign
 */

namespace Countersign\WooCommerce;

defined( 'ABSPATH' ) || exit;

/** Status, notes, e-mails and the end of the session follow from next(), whenever an order is saved, by whomever. */
final class State_Machine {
	/** What the order said when it was last saved, see next(): for the list of orders and its filter. */
	const STATE = '_countersign_state';
	const YES   = array( '', 'cleared', 'overridden', 'not_needed' );

	/** The buyer has done all but pay. */
	const RELEASED = array( 'cleared', 'overridden' );

	/** What an order that is over goes on saying; without one of these it says nothing. */
	const LASTING = array( 'cleared', 'overridden', 'not_needed', 'refused', 'declined' );

	/** @var array[] What is done once an order is stored, by the object's id: what was not stored has not happened. */
	private static $due = array();

	/** Add the hooks. Ours come last, and see what is stored. */
	public static function register(): void {
		// WC_Abstract_Order::save(): "Allows you to adjust object props before save".
		add_action( 'woocommerce_before_order_object_save', array( self::class, 'before_save' ), PHP_INT_MAX );
		add_action( 'woocommerce_after_order_object_save', array( self::class, 'after_save' ) );
		// An order also ends in the trash, or by being deleted: in tables of its own, or as a post.
		foreach ( array( 'woocommerce_trash_order', 'woocommerce_before_delete_order', 'wp_trash_post', 'before_delete_post' ) as $hook ) {
			add_action( $hook, array( self::class, 'gone' ) );
		}
	}

	/**
	 * What follows. It reads and changes nothing, so that a table can test it.
	 *
	 * @param array $was What was stored: `wants` (unpaid, hold, paid, done or over), `state` (see below), `session`.
	 * @param array $is  What is to be stored: `wants`; whether it has `moved` to another status; the `state` (of Orders::state(); empty: nothing has
	 *                   a class); `session`; whether it is `open`; whether a yes is `fresh`; whether the service was `asked` just now, and was `away`.
	 * @return array `ask` alone: ask the service first. Else the `state` to store; whether to `hold` the order, to `end` its session, to `note` what
	 *               has changed, to `report` the payment; and `mails`: notice (to the buyer), stopped (to the shop), cleared (to the buyer, later).
	 */
	public static function next( array $was, array $is ): array {
		$yes     = in_array( $is['state'], self::YES, true );
		$arrives = $is['moved'] && in_array( $is['wants'], array( 'paid', 'done' ), true );
		$doubt   = $arrives && ( 'done' === $is['wants'] || ! $yes || ! $is['fresh'] );
		if ( '' !== $is['state'] && ! $is['asked'] && ( $doubt || ( 'paid' === $is['wants'] && 'none' === $is['state'] ) ) ) {
			return array( 'ask' => true );
		}
		$hold  = ( ! $yes || ( $is['asked'] && $is['away'] ) ) && ( $arrives || 'paid' === $is['wants'] );
		$wants = $hold ? 'hold' : $is['wants'];
		$state = $is['state'];
		if ( in_array( $wants, array( 'done', 'over' ), true ) && ! in_array( $state, self::LASTING, true ) ) {
			$state = in_array( $was['state'], self::LASTING, true ) ? $was['state'] : '';
		}
		$lost  = in_array( $was['state'], array( 'cleared', 'overridden', 'not_needed' ), true ) && ! in_array( $state, self::YES, true ) && in_array( $wants, array( 'hold', 'done' ), true );
		$waits = 'hold' === $wants && ! $yes && ! in_array( $state, array( 'refused', 'declined' ), true ) && ( $hold || $is['moved'] || $lost );
		$mails = array(
			// Not to a buyer who was refused or has declined: that is for staff to decide.
			'notice'  => $waits,
			'stopped' => $lost,
			'cleared' => 'unpaid' === $wants && in_array( $state, self::RELEASED, true ) && ! in_array( $was['state'], self::RELEASED, true ),
		);
		return array(
			'ask'    => false,
			'state'  => $state,
			'hold'   => $hold,
			'end'    => 'over' === $wants && $is['open'],
			'note'   => 'none' !== $state && ( $state !== $was['state'] || ( '' !== $state && $is['session'] !== $was['session'] ) ),
			// Not of a manual override: the service takes no report of what is not cleared.
			'report' => 'overridden' !== $state && $arrives && ! $hold && ! in_array( $was['wants'], array( 'paid', 'done' ), true ),
			'mails'  => array_keys( array_filter( $mails ) ),
		);
	}

	/**
	 * What the shop wants of an order.
	 *
	 * @param string $status Its status.
	 */
	private static function wants( string $status ): string {
		$words = array( 'completed' => 'done', 'on-hold' => 'hold', 'cancelled' => 'over', 'refunded' => 'over', 'trash' => 'over' );
		return $words[ $status ] ?? ( in_array( $status, wc_get_is_paid_statuses(), true ) ? 'paid' : 'unpaid' );
	}

	/**
	 * What is stored of an order.
	 *
	 * @param \WC_Order $order The order.
	 */
	private static function was( $order ): array {
		$stored = array();
		foreach ( $order->get_meta_data() as $meta ) {
			// As it was read; what was added since, as to a copy, has no id.
			$stored[ $meta->key ] = $meta->id ? $meta->get_data()['value'] : '';
		}
		return array(
			'wants'   => self::wants( $order->get_id() > 0 ? $order->get_base_data()['status'] : '' ),
			'state'   => (string) ( $stored[ self::STATE ] ?? '' ),
			'session' => (string) ( $stored[ Orders::SESSION ] ?? '' ),
		);
	}

	/**
	 * What an order is now.
	 *
	 * @param \WC_Order $order The order.
	 * @param bool      $asked Whether the service was asked.
	 * @param bool      $away  Whether it did not respond.
	 */
	private static function is( $order, bool $asked, bool $away = false ): array {
		$data  = Orders::data( $order );
		$moved = isset( $order->get_changes()['status'] );
		return array(
			// After WooCommerce's erasure nothing is wanted of it but what somebody does with it then.
			'wants'   => 'yes' === $order->get_meta( '_anonymized' ) && ! $moved ? 'over' : self::wants( $order->get_status() ),
			'moved'   => $moved,
			'state'   => Orders::is_gated( $order ) ? Orders::state( $order ) : '',
			'session' => $data['session'],
			'open'    => 'open' === $data['status'],
			'fresh'   => $data['until'] > time(),
			'asked'   => $asked,
			'away'    => $away,
		);
	}

	/**
	 * What an order says to staff.
	 *
	 * @param \WC_Order $order The order.
	 */
	public static function state( $order ): string {
		return self::next( self::was( $order ), self::is( $order, true ) )['state'];
	}

	/**
	 * Nothing is paid or completed before the service has said yes, and what was paid stops if it says no.
	 *
	 * @param \WC_Order $order The order, before it is saved.
	 */
	public static function before_save( $order ): void {
		// One that was begun at another address, as in a copy of the shop, is left alone until somebody wants something of it.
		$shop = Orders::stored( $order )['shop'];
		$kept = '' !== $shop && ! in_array( $shop, Settings::shops(), true ) && ! isset( $order->get_changes()['status'] );
		if ( 'shop_order' !== $order->get_type() || $kept ) {
			return;
		}
		$was     = self::was( $order );
		$trouble = '';
		$next    = self::next( $was, self::is( $order, false ) );
		if ( $next['ask'] ) {
			try {
				Orders::decide( $order );
				Orders::excuse( $order );
			} catch ( Service_Error $error ) {
				$trouble = $error->reason;
			}
			$next = self::next( $was, self::is( $order, true, '' !== $trouble ) );
		}
		if ( $next['hold'] ) {
			self::hold( $order, '' === $trouble ? Words::why( $order ) : Words::trouble( $trouble ) );
		}
		if ( $next['end'] ) {
			self::attempt( $order, array( Orders::class, 'end_session' ) );
		}
		if ( (string) $order->get_meta( self::STATE ) !== $next['state'] ) {
			$order->update_meta_data( self::STATE, $next['state'] );
		}
		self::$due[ spl_object_id( $order ) ] = array( 'before' => $was['state'] ) + $next;
	}

	/**
	 * An order that is not cleared waits, whoever wanted something else.
	 *
	 * @param \WC_Order $order The order.
	 * @param string    $why   For its note.
	 */
	private static function hold( $order, string $why ): void {
		$changes = $order->get_changes();
		if ( isset( $changes['date_completed'] ) ) {
			$order->set_date_completed( null );
		}
		$note = isset( $changes['status'] )
			/* translators: 1: a status, 2: why */
			? sprintf( __( 'Countersign: this order is not cleared (%2$s), so it did not become “%1$s”. Do not ship it. If it was paid, find out how, and refund it or have it cleared.', 'countersign-woocommerce' ), wc_get_order_status_name( $order->get_status() ), $why )
			/* translators: %s: why */
			: sprintf( __( 'Countersign: this order is not cleared any more (%s). Do not ship it. Refund it, or have it cleared.', 'countersign-woocommerce' ), $why );
		$order->set_status( 'on-hold', $note );
	}

	/**
	 * Do what the order does not depend on: a session also ends by itself, later, and a notice that is not kept by a payment lasts as long as any.
	 *
	 * @param \WC_Order $order The order.
	 * @param callable  $act   Takes the order.
	 */
	private static function attempt( $order, callable $act ): void {
		try {
			$act( $order );
		} catch ( Service_Error $error ) {
			$error->log( $order->get_id() );
		}
	}

	/**
	 * An order goes into the trash, or is deleted.
	 *
	 * @param int $order_id The order, or any post.
	 */
	public static function gone( $order_id ): void {
		$order = Orders::find( (int) $order_id );
		if ( $order && self::next( self::was( $order ), array( 'wants' => 'over' ) + self::is( $order, true ) )['end'] ) {
			self::attempt(
				$order,
				static function ( $order ) {
					Orders::locked( $order->get_id(), array( Orders::class, 'end_session' ) );
				}
			);
		}
	}

	/**
	 * Write down what has changed, and tell whom it concerns.
	 *
	 * @param \WC_Order $order The order, which was saved.
	 */
	public static function after_save( $order ): void {
		$next = self::$due[ spl_object_id( $order ) ] ?? array();
		unset( self::$due[ spl_object_id( $order ) ] );
		if ( array() === $next ) {
			return;
		}
		if ( $next['note'] ) {
			$data = Orders::data( $order );
			$ids  = array_filter( array( $data['session'], $data['ack'], $data['clearance'] ) );
			wc_get_logger()->info(
				"Order {$order->get_id()}: {$next['before']} -> {$next['state']}; " . implode( ', ', array_merge( $ids, $data['reasons'] ) ),
				array( 'source' => 'countersign' )
			);
			$note = Words::note( $next['state'], $data );
			if ( '' !== $note && in_array( $next['state'], self::RELEASED, true ) && $order->has_status( 'on-hold' ) ) {
				$note .= ' ' . __( 'It is on hold: if it was paid, set it to processing.', 'countersign-woocommerce' );
			}
			if ( '' !== $note ) {
				$order->add_order_note( 'Countersign: ' . $note );
			}
		}
		foreach ( $next['mails'] as $mail ) {
			Emails::send( $mail, $order );
		}
		if ( $next['report'] ) {
			self::attempt( $order, array( Orders::class, 'report_payment' ) );
		}
	}
}
