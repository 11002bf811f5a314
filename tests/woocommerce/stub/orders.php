<?php
/**
 * Orders, products, and the functions that find them.
 */

defined( 'ABSPATH' ) || exit;

/** includes/abstracts/abstract-wc-data.php: properties with changes that are not saved yet, and meta data. */
abstract class WC_Data {
	protected $id = 0;
	protected $data = array();
	protected $changes = array();
	protected $meta = null;

	public function get_id() {
		return $this->id;
	}

	public function get_changes() {
		return $this->changes;
	}

	protected function get_prop( $name ) {
		return $this->changes[ $name ] ?? $this->data[ $name ];
	}

	protected function set_prop( $name, $value ) {
		if ( $value !== $this->data[ $name ] || array_key_exists( $name, $this->changes ) ) {
			$this->changes[ $name ] = $value;
		}
	}

	public function read_meta_data( $force_read = false ) {
		if ( $force_read ) {
			wp_cache_delete( $this->id, 'post_meta' );
		}
		$this->meta = array();
		foreach ( (array) get_post_meta( $this->id ) as $name => $values ) {
			$this->meta[ $name ] = maybe_unserialize( $values[0] );
		}
	}

	/** `$single`: the first value, or an empty string. */
	public function get_meta( $key = '', $single = true, $context = 'view' ) {
		if ( null === $this->meta ) {
			$this->read_meta_data();
		}
		return $this->meta[ $key ] ?? '';
	}

	public function update_meta_data( $key, $value, $meta_id = 0 ) {
		if ( null === $this->meta ) {
			$this->read_meta_data();
		}
		$this->meta[ $key ] = $value;
		$this->changed_meta[ $key ] = $value;
	}

	protected $changed_meta = array();

	/** Only what was changed is written, as in WC_Data::save_meta_data(). */
	public function save_meta_data() {
		foreach ( $this->changed_meta as $name => $value ) {
			update_post_meta( $this->id, $name, is_string( $value ) ? wp_slash( $value ) : $value );
		}
		$this->changed_meta = array();
	}
}

/** includes/class-wc-product.php */
class WC_Product extends WC_Data {
	public function __construct( $id ) {
		$this->id = (int) $id;
	}

	public function get_name() {
		return get_the_title( $this->id );
	}

	public function get_price() {
		return (float) get_post_meta( $this->id, '_price', true );
	}

	public function save() {
		$this->save_meta_data();
		return $this->id;
	}
}

/** includes/wc-product-functions.php: false if there is no such product. */
function wc_get_product( $id ) {
	return 'product' === get_post_type( $id ) ? new WC_Product( $id ) : false;
}

/** includes/class-wc-order-item-product.php */
final class WC_Order_Item_Product {
	private $product_id;

	public function __construct( $product_id ) {
		$this->product_id = $product_id;
	}

	/** That of the product, also for a variation. */
	public function get_product_id() {
		return $this->product_id;
	}

	public function get_product() {
		return wc_get_product( $this->product_id );
	}
}

/** includes/class-wc-order.php, includes/abstracts/abstract-wc-order.php */
class WC_Order extends WC_Data {
	protected $data = array( 'status' => 'pending', 'shipping_country' => '', 'shipping_state' => '', 'shipping_postcode' => '', 'shipping_first_name' => '', 'billing_email' => '', 'order_key' => '', 'payment_method' => '', 'date_paid' => '', 'date_completed' => '', 'items' => array(), 'cart_hash' => '', 'customer_id' => 0 );
	private $status_transition = false;

	public function __construct( $id = 0 ) {
		$this->id = (int) $id;
		if ( $this->id ) {
			$stored               = get_post_meta( $this->id, '_stub_order', true );
			$this->data           = array_merge( $this->data, is_array( $stored ) ? $stored : array() );
			$this->data['status'] = preg_replace( '/^wc-/', '', get_post_status( $this->id ) );
		}
	}

	public function __call( $name, $arguments ) {
		list( $verb, $property ) = explode( '_', $name, 2 );
		if ( ! array_key_exists( $property, $this->data ) ) {
			throw new BadMethodCallException( $name );
		}
		return 'get' === $verb ? $this->get_prop( $property ) : $this->set_prop( $property, $arguments[0] ?? '' );
	}

	public function get_type() {
		return 'shop_order';
	}

	public function get_items( $types = 'line_item' ) {
		return array_map( static function ( $id ) { return new WC_Order_Item_Product( (int) $id ); }, $this->get_prop( 'items' ) );
	}

	public function get_total() {
		return array_sum( array_map( static function ( $item ) { return $item->get_product() ? $item->get_product()->get_price() : 0; }, $this->get_items() ) );
	}

	public function has_status( $status ) {
		return in_array( $this->get_status(), (array) $status, true );
	}

	public function key_is_valid( $key ) {
		return hash_equals( $this->get_order_key(), $key );
	}

	/** WC_Order::set_status(): dates are set at once, hooks are fired when it is saved. */
	public function set_status( $new, $note = '', $manual = false ) {
		$from = $this->get_status();
		$new  = preg_replace( '/^wc-/', '', $new );
		$this->set_prop( 'status', $new );
		if ( $from !== $new ) {
			$this->status_transition = array( 'from' => $this->status_transition ? $this->status_transition['from'] : $from, 'to' => $new, 'note' => $note, 'manual' => (bool) $manual );
			$paid = apply_filters( 'woocommerce_payment_complete_order_status', 'processing', $this->get_id(), $this );
			if ( ! $this->get_date_paid() && ( $new === $paid || ( 'processing' === $paid && 'completed' === $new ) ) ) {
				$this->set_date_paid( (string) time() );
			}
			if ( 'completed' === $new ) {
				$this->set_date_completed( (string) time() );
			}
		}
		return array( 'from' => $from, 'to' => $new );
	}

	public function update_status( $new, $note = '', $manual = false ) {
		$this->set_status( $new, $note, $manual );
		$this->save();
		return true;
	}

	/** WC_Abstract_Order::save() with its hooks, then WC_Order::status_transition(). */
	public function save() {
		do_action( 'woocommerce_before_order_object_save', $this, null );
		$status = 'wc-' . $this->get_status();
		if ( ! $this->id ) {
			$this->set_order_key( 'wc_order_' . wp_generate_password( 13, false ) );
			$this->id = wp_insert_post( array( 'post_type' => 'shop_order', 'post_status' => $status, 'post_title' => 'Order' ) );
		} elseif ( isset( $this->changes['status'] ) ) {
			wp_update_post( array( 'ID' => $this->id, 'post_status' => $status ) );
		}
		if ( $this->changes ) {
			$this->data    = array_merge( $this->data, $this->changes );
			$this->changes = array();
			update_post_meta( $this->id, '_stub_order', wp_slash( $this->data ) );
		}
		$this->save_meta_data();
		do_action( 'woocommerce_after_order_object_save', $this, null );
		$moved                   = $this->status_transition;
		$this->status_transition = false;
		if ( $moved ) {
			do_action( 'woocommerce_order_status_' . $moved['to'], $this->id, $this, $moved );
			$this->add_order_note( trim( $moved['note'] . " Order status changed from {$moved['from']} to {$moved['to']}." ), 0, $moved['manual'] );
			do_action( "woocommerce_order_status_{$moved['from']}_to_{$moved['to']}", $this->id, $this );
			do_action( 'woocommerce_order_status_changed', $this->id, $moved['from'], $moved['to'], $this );
		}
		return $this->id;
	}

	public function needs_payment() {
		$statuses = apply_filters( 'woocommerce_valid_order_statuses_for_payment', array( 'pending', 'failed' ), $this );
		return apply_filters( 'woocommerce_order_needs_payment', $this->has_status( $statuses ) && $this->get_total() > 0, $this, $statuses );
	}

	public function payment_complete( $transaction_id = '' ) {
		do_action( 'woocommerce_pre_payment_complete', $this->get_id(), $transaction_id );
		if ( WC()->session ) {
			WC()->session->set( 'order_awaiting_payment', false );
		}
		if ( $this->has_status( apply_filters( 'woocommerce_valid_order_statuses_for_payment_complete', array( 'on-hold', 'pending', 'failed', 'cancelled' ), $this ) ) ) {
			if ( ! $this->get_date_paid() ) {
				$this->set_date_paid( (string) time() );
			}
			$this->set_status( apply_filters( 'woocommerce_payment_complete_order_status', 'processing', $this->get_id(), $this ) );
			$this->save();
			do_action( 'woocommerce_payment_complete', $this->get_id(), $transaction_id );
		}
		return true;
	}

	/** A comment of the order; not escaped when it is stored. */
	public function add_order_note( $note, $is_customer_note = 0, $added_by_user = false ) {
		return $this->id ? wp_insert_comment( array( 'comment_post_ID' => $this->id, 'comment_content' => wp_slash( $note ), 'comment_type' => 'order_note', 'comment_approved' => 1 ) ) : 0;
	}

	public function get_order_number() {
		return (string) apply_filters( 'woocommerce_order_number', $this->get_id(), $this );
	}

	/** Without permalinks, as wc_get_endpoint_url() makes it. */
	public function get_checkout_payment_url( $on_checkout = false ) {
		return add_query_arg( array( 'order-pay' => $this->id, 'pay_for_order' => 'true', 'key' => $this->get_order_key() ), wc_get_checkout_url() );
	}

	public function get_checkout_order_received_url() {
		return add_query_arg( array( 'order-received' => $this->id, 'key' => $this->get_order_key() ), wc_get_checkout_url() );
	}

	public function get_edit_order_url() {
		return admin_url( "post.php?post={$this->id}&action=edit" );
	}
}

/** includes/wc-order-functions.php: takes an id, a post or an order; false if there is none. */
function wc_get_order( $order = false ) {
	$id = $order instanceof WC_Order ? $order->get_id() : ( $order instanceof WP_Post ? $order->ID : $order );
	return 'shop_order' === get_post_type( $id ) ? new WC_Order( $id ) : false;
}

/** The same file, and WC_Order_Query: `meta_key` and `meta_value` are passed on to WP_Query. */
function wc_get_orders( $args ) {
	return get_posts( array( 'post_type' => $args['type'], 'numberposts' => $args['limit'], 'fields' => 'ids', 'post_status' => array_keys( wc_get_order_statuses() ), 'meta_key' => $args['meta_key'] ?? '', 'meta_value' => $args['meta_value'] ?? '' ) );
}

function wc_get_order_statuses() {
	return array( 'wc-pending' => 'Pending payment', 'wc-processing' => 'Processing', 'wc-on-hold' => 'On hold', 'wc-completed' => 'Completed', 'wc-cancelled' => 'Cancelled', 'wc-refunded' => 'Refunded', 'wc-failed' => 'Failed' );
}

function wc_get_order_status_name( $status ) {
	return wc_get_order_statuses()[ 'wc-' . $status ] ?? $status;
}

function wc_get_is_paid_statuses() {
	return apply_filters( 'woocommerce_order_is_paid_statuses', array( 'processing', 'completed' ) );
}

/** includes/wc-core-functions.php */
function wc_get_logger() {
	return new class() {
		public function warning( $message, $context = array() ) {
			error_log( $message );
		}
	};
}

/** includes/wc-formatting-functions.php */
function wc_clean( $text ) {
	return is_scalar( $text ) ? sanitize_text_field( $text ) : $text;
}
